#pragma once
// Measures the kernels of a processor for its cost model (backend/cost_model.h).

#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cost_model.h"

namespace halfstep::study {

/// Below this part of the best bursts, 15 % faster than a busy core's, a core is shared or slow.
inline constexpr double k_full_rate = 0.75;

/// GEMMs, packing and convolutions of small and large layers in every dtype.
std::vector<backend::Workload> tuned_workloads();

struct TuneOptions {
  std::vector<backend::Workload> workloads = tuned_workloads();
  /// Turns, at least two, in which all kernels of a workload are timed one after the other. The
  /// second shortest time is used.
  int rounds = 5;
  /// Workloads with a disturbed kernel (see TuneResult) are measured again, all of them in turn,
  /// until none is left or this time is over. Seconds; 0 measures every workload once.
  double max_seconds = 600;
  /// Called before each workload is measured, in pass 0 (all workloads) or a later one (those
  /// disturbed).
  std::function<void(int pass, std::size_t done, std::size_t all)> progress;
  /// The rate of a burst of register arithmetic, in flop/s, to which timings are held; by default
  /// that of this processor's fastest unit is measured.
  std::function<double()> burst_rate;
  /// Polled between workloads; true ends the measurement.
  std::function<bool()> stop;
};

struct TuneResult {
  /// Processor time of one thread, for k_nominal_batch samples.
  std::vector<backend::CostModel::Sample> samples;
  double peak_gflops = 0;  ///< register peak of the fastest unit: the best burst
  /// The register peak on one thread and on all processors that the process may use.
  std::vector<backend::CostModel::Peak> peaks;
  /// The number of `samples` not timed twice between two bursts of k_full_rate of the peak or more.
  std::size_t disturbed = 0;
  bool stopped = false;
};

/// Times every kernel of `cpu` that accepts a workload, on the calling thread, with random data. A
/// burst of register arithmetic before and after each timing shows whether the processor was at its
/// full rate: a virtual processor whose core is shared with another tenant is slower for seconds at
/// a time, at the same clock and without stolen time. Errors: UserError(unavailable) on processors
/// whose register peak is unknown.
TuneResult tune(const backend::Backend& cpu, const TuneOptions& options);

}  // namespace halfstep::study
