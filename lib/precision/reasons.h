#pragma once
// Explanations of the rewrite's decisions.

#include <optional>
#include <string>

#include "precision/paint.h"

namespace halfstep::precision {

/// Properties of a vertex that determine its explanation.
struct VertexTraits {
  std::optional<List> list;
  bool float32 = true;
  bool supported = true;     ///< the dtype is allowed and has a kernel
  bool admitted = true;      ///< the dtype is allowed
  bool after_allow = false;  ///< a converted op precedes it
  bool ref_read = false;     ///< it reads a ref variable
  std::string cluster;       ///< why its tensor list is unsafe
};

/// "`Sum` in dense_2's backward pass (dense_2/Sum)", or "`Sum` (name)" outside layers.
std::string describe(const graph::Node& node);

/// The reason for the paint of `vertex`; `cause` is the vertex that determined it, or nullptr.
std::string reason(const graph::Graph& graph,
                   const PaintedVertex& vertex,
                   const PaintedVertex* cause,
                   const VertexTraits& traits,
                   bool infer_follows,
                   DType target);

}  // namespace halfstep::precision
