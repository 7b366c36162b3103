#pragma once
// Steps with values that are not finite: changes of the loss scale and skipped updates.

#include <cstdint>
#include <optional>
#include <string>

#include "core/fields.h"

namespace halfstep::train {

/// The first non-finite tensor of a step, found by a second run that checks each launch.
struct FirstNonfinite {
  std::string tensor;  ///< name of the node that produced it
  std::string op;
  std::string layer;
  std::string phase;
  std::string dtype;
  std::string kind;  ///< "inf" or "nan"
  std::int64_t count = 0;
  double finite_absmax = 0;  ///< largest finite magnitude in it
  bool loss_finite = true;   ///< whether the unscaled loss was finite
  void fields(Fields& f);
  bool operator==(const FirstNonfinite&) const = default;
};

/// A change of the loss scale, up or down.
struct ScaleEvent {
  std::int64_t step = 0;     ///< applied steps before it
  std::int64_t attempt = 0;  ///< which attempted step, from 1
  std::int64_t ordinal = 0;  ///< of the batch
  double from = 0;
  double to = 0;
  std::optional<FirstNonfinite> first_nonfinite;  ///< of every decrease
  void fields(Fields& f);
  bool operator==(const ScaleEvent&) const = default;
};

/// A step whose update was skipped.
struct SkippedStep {
  std::int64_t attempt = 0;
  std::int64_t ordinal = 0;
  bool retried = false;
  std::optional<FirstNonfinite> first_nonfinite;
  void fields(Fields& f);
  bool operator==(const SkippedStep&) const = default;
};

}  // namespace halfstep::train
