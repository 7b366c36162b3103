#pragma once
// Merging of several config files and single settings; the later one wins.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "config/node.h"

namespace halfstep::config {

/// Merges `over` into `base`. Maps merge key by key; lists and scalars replace, and so does `null`.
///
/// A map with another `type` replaces too, since the fields of one optimizer mean nothing to
/// another; `device: cpu` replaces only the kind and index, not the threads. Where two forms
/// exclude each other, the later one removes the earlier: `model.{input,layers}` and
/// `model.{inputs,nodes,outputs}`; `data.name` and `data.{format,path,sha256}`. Both forms in one
/// file are kept, and the reader reports the conflict.
void overlay(Node& base, Node over);

// Shorthand: maps that may be written as one scalar: `optimizer: sgd`, `loss_scale: 1024`, `device:
// cuda:1`. Expanded to their maps they can be merged and set key by key.

/// Expands the scalar at config path `path` into its map. Returns false, with the node unchanged,
/// where the scalar is not a shorthand.
bool expand_shorthand(Node& node, std::string_view path);

/// One setting from the command line or the environment.
struct Override {
  enum class Kind { set, set_text, unset };

  Kind kind = Kind::set;
  std::string path;   ///< training.epochs, model.layers[logits].dtype
  std::string value;  ///< YAML, or the text itself for set_text
  std::string
      origin;  ///< for messages and `--origins`: "--set training.epochs=2", "HALFSTEP_THREADS"

  /// `path=value`, split at the first `=`; `flag` is `--set` or `--set-str`.
  /// Errors: UserError (config) without `=` or path.
  static Override parse(Kind kind, std::string_view flag, std::string_view argument);
};

/// Changes one value of `config` and creates the maps on its path. A list item is named by its
/// index or its `name`; `[key]` on a map is a key that contains dots. Errors go to `diagnostics`: a
/// path through a scalar or to an item that does not exist, an unset of a missing key (except one
/// that the other form has removed), a value that is not YAML.
void apply(Node& config, const Override& change, Diagnostics& diagnostics);

/// Merges the files in order, then the settings in order.
/// Errors: UserError (config) for a file that is no config; others go to `diagnostics`.
Node assemble(std::span<const std::string> files,
              std::span<const Override> overrides,
              Diagnostics& diagnostics,
              const LoadOptions& options = {});

}  // namespace halfstep::config
