#include "study/machine_load.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/parallel.h"
#include "core/system.h"

namespace halfstep::study {

std::string load_note(int threads) {
  const double load = load_average()[0];
  const int processors = std::max(1, available_processors());
  // One busy process on many processors does no harm; it matters when no processor is left for our
  // threads.
  if (load + threads < processors + 0.5 || load < 0.5) return "";
  return fmt::format(
      "the machine was busy before: load average {:.1f} on {} processors, {} thread{} asked for; "
      "times and ratios are noisy",
      load,
      processors,
      threads,
      threads == 1 ? "" : "s");
}

}  // namespace halfstep::study
