#pragma once
// Changes by which a user gains more from 16 bits, or loses less.

#include <vector>

#include "report/explain_report.h"

namespace halfstep::report {

/// W203 extents that the matrix unit pads; W204 too little work to gain; W205 a denied op that
/// keeps others in float32, with the list edit that frees them, tried out; W206 no unit for the
/// dtype; W207 casts that move much; W208 epsilon lost in float16; W209 a GPU that TensorFlow would
/// not rewrite for; W210 a rewrite that found nothing to do. Then the session's own warnings.
/// `explanation` is complete except for its hints.
std::vector<Remark> hints(train::Session& session, const Explanation& explanation);

}  // namespace halfstep::report
