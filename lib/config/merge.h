#pragma once
// Several configs and single settings laid over each other, the later one winning.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "config/node.h"

namespace halfstep::config {

/// Lays `over` on `base`. Maps merge key by key; lists and scalars replace, and so does `null`.
///
/// A map whose `type` is another one replaces too (the fields of another optimizer mean nothing);
/// `device: cpu` replaces only the kind and index, not the threads.
/// Where two ways of saying the same exclude each other, the later one removes the earlier:
/// `model.{input,layers}` and `model.{inputs,nodes,outputs}`; `data.name` and
/// `data.{format,path,sha256}`. Both at once in one file stay, for the reader to report.
void overlay(Node& base, Node over);

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

/// Changes one value of `config`, making the maps on the way. A list item is named by its index or
/// its `name`; `[key]` on a map is a key with dots in it.
/// Errors go to `diagnostics`: a path that leads through a scalar or to no item, an unset of
/// nothing (but for what the other way of saying the same has removed), a value that is not YAML.
void apply(Node& config, const Override& change, Diagnostics& diagnostics);

/// The files, later ones over earlier, and then the settings in their order.
/// Errors: UserError (config) for a file that is no config; others go to `diagnostics`.
Node assemble(std::span<const std::string> files,
              std::span<const Override> overrides,
              Diagnostics& diagnostics,
              const LoadOptions& options = {});

}  // namespace halfstep::config
