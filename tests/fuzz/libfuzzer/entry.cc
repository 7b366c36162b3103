// The entry point of libFuzzer, which Debian has in libclang-rt-19-dev. HALFSTEP_FUZZ_TARGET names
// the target:
//
//   cmake --preset fuzz && cmake --build build/fuzz --target fuzz_driver fuzz_libfuzzer
//   cd build/fuzz/bin
//   ./fuzz_driver --corpus corpus
//   HALFSTEP_FUZZ_TARGET=config ./fuzz_libfuzzer corpus/config -timeout=5 -rss_limit_mb=2048

#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const halfstep::fuzz::Target* target = [] {
    const char* name = std::getenv("HALFSTEP_FUZZ_TARGET");
    const halfstep::fuzz::Target* found = halfstep::fuzz::find_target(name == nullptr ? "" : name);
    if (found == nullptr) {
      std::fprintf(stderr, "HALFSTEP_FUZZ_TARGET names no target; targets:");
      for (const halfstep::fuzz::Target& t : halfstep::fuzz::targets()) {
        std::fprintf(stderr, " %.*s", static_cast<int>(t.name.size()), t.name.data());
      }
      std::fprintf(stderr, "\n");
      std::exit(2);
    }
    return found;
  }();
  return target->test_one(bytes, size);
}
