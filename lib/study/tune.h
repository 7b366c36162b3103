#pragma once
// Measures the kernels of a processor for its cost model (backend/cost_model.h).

#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cost_model.h"

namespace halfstep::study {

/// GEMMs, packing and convolutions of small and large layers in every dtype.
std::vector<backend::Workload> tuned_workloads();

struct TuneOptions {
  std::vector<backend::Workload> workloads = tuned_workloads();
  /// Turns in which all kernels of a workload are timed one after the other. The best turn is used.
  int rounds = 5;
  /// Called before each workload is measured.
  std::function<void(std::size_t done, std::size_t all)> progress;
  /// Polled between workloads; true ends the measurement.
  std::function<bool()> stop;
};

struct TuneResult {
  /// Processor time of one thread, for k_nominal_batch samples.
  std::vector<backend::CostModel::Sample> samples;
  double peak_gflops = 0;  ///< register peak of the fastest unit: the best burst
  /// The number of `samples` that were never timed between two bursts near the peak (at least 85
  /// %).
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
