#pragma once
// The section `model`: a list of layers, or a graph of named nodes. The fields of the layers are
// read by lib/nn.

#include <cstdint>
#include <string>
#include <vector>

#include "config/fields.h"

namespace halfstep::config {

/// Either `input` and `layers`, or `inputs`, `nodes` and `outputs`.
struct ModelSpec {
  std::vector<std::int64_t> input;  ///< extents of one sample
  Node layers;                      ///< a list of maps, each with a `type`
  std::vector<NamedExtents> inputs;
  Node nodes;  ///< a map from names to maps, each with a `type` and mostly a `from`
  std::vector<std::string> outputs;

  bool sequential() const { return nodes.kind == Node::Kind::null; }
  void fields(Fields& f);
};

}  // namespace halfstep::config
