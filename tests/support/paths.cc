#include "support/paths.h"

namespace halfstep::test {

std::filesystem::path source_dir() { return HALFSTEP_SOURCE_DIR; }
std::filesystem::path program() { return HALFSTEP_PROGRAM; }

}  // namespace halfstep::test
