#pragma once

#include <string>

namespace halfstep::study {

/// A note when others keep the processors busy, "" otherwise; to be asked before a study does so
/// itself.
std::string load_note(int threads);

}  // namespace halfstep::study
