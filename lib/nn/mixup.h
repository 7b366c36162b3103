#pragma once
// mixup: training on means of pairs of samples. Sources: Zhang et al. 2018; Keras 3, MixUp, whose
// partners are a permutation of the batch too, and which mixes one-hot labels: for a loss that is
// linear in the labels, as the cross-entropies are, the mean of the losses is the same.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "config/run_spec.h"
#include "core/batch_share.h"
#include "graph/builder.h"
#include "nn/trained_output.h"

namespace halfstep::nn {

struct Model;

/// Quantiles of Beta(alpha, alpha) at i / intervals for i in [0, intervals], within 2e-6 of them.
/// `alpha` in (0, 1], `intervals` even.
std::vector<double> beta_quantiles(double alpha, int intervals);

/// The samples of a batch and their partners, mixed by one weight for each pair.
class Mixup {
 public:
  /// Draws the weights from (seed, ordinal, position of the sample in the batch of all ranks), by a
  /// table of quantiles with linear interpolation.
  Mixup(graph::Builder& b,
        double alpha,
        graph::Value ordinal,
        std::uint64_t seed,
        const BatchShare& share);

  /// w x + (1 - w) y, float32 [rows, ...].
  graph::Value mean(graph::Value x, graph::Value y) const;
  /// The mean of the first and the second half of `both`, float32 [2 * rows, ...].
  graph::Value mean_of_halves(graph::Value both) const;
  /// Labels of any dtype: x where its weight is at least one half, else y.
  graph::Value heavier(graph::Value x, graph::Value y) const;
  /// The first and the second half along axis 0.
  static std::pair<graph::Value, graph::Value> halves(graph::Builder& b, graph::Value both);

 private:
  /// The weights with axes of 1 behind them, up to the rank of `like`.
  graph::Value weights_like(graph::Value like) const;

  graph::Builder& b_;
  graph::Value weights_;  ///< float32 [rows]
};

/// Reports a loss or a model that mixup does not support, at data.augment.mixup.
void check_mixup(const config::RunSpec& spec,
                 const Model& model,
                 std::span<const TrainedOutput> outputs,
                 Diagnostics& diagnostics);

}  // namespace halfstep::nn
