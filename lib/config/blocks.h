#pragma once
// Blocks: named parts of a model's graph, written once and used several times.
//
//   model:
//     blocks:
//       encoder:
//         parameters: {width: 64, heads: null}      # null: has no default
//         nodes:
//           norm: {type: layer_normalization, from: input}
//           attention: {type: multi_head_attention, num_heads: $heads, key_dim: $width, from: norm}
//           sum: {type: add, from: [input, attention]}
//     nodes:
//       encode: {block: encoder, count: 2, heads: 4, from: image}
//
// becomes the nodes encode.1.norm, ..., encode.2.sum. `$heads` is replaced by the value of the
// parameter. `input` is the node in the use's `from`; `inputs: [a, b]` gives a block several. With
// `count`, each copy after the first reads the output of the copy before it. The output of a block
// is its last node, unless `output` names another; `from: encode` reads that of the last copy. A
// block may use other blocks, but not itself.

#include <array>
#include <string_view>

#include "config/node.h"

namespace halfstep::config {

/// The keys of a node that name its sources: its inputs and the initial states of a recurrent
/// layer.
inline constexpr std::array<std::string_view, 2> k_source_keys{"from", "initial_state"};

/// Replaces the uses of blocks in `model.nodes` and `model.outputs`, and removes `model.blocks`.
/// Nodes keep the positions at which they were written. Errors, in `diagnostics`: blocks,
/// parameters and inputs that do not exist, values that are missing, blocks that use themselves or
/// are not used.
void expand_blocks(Node& root, Diagnostics& diagnostics);

}  // namespace halfstep::config
