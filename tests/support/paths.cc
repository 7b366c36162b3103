#include "support/paths.h"

namespace halfstep::test {

std::filesystem::path source_dir() { return HALFSTEP_SOURCE_DIR; }
std::filesystem::path program() { return HALFSTEP_PROGRAM; }
std::filesystem::path emulated_plugin() {
  return program().parent_path() / "libhalfstep_cuda_emulated.so";
}

}  // namespace halfstep::test
