#pragma once

#include <string>

namespace halfstep::study {

/// A note when other processes keep the processors busy, "" otherwise; to be called before the
/// study itself creates load.
std::string load_note(int threads);

}  // namespace halfstep::study
