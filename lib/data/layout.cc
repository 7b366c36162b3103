#include "data/layout.h"

#include <cstring>

#include "core/parallel.h"

namespace halfstep::data {
namespace {

/// [c, h, w] of [h, w, c].
Shape channels_first(const Shape& s) { return {s[2], s[0], s[1]}; }

/// Whether both layouts of a sample store its elements in the same order.
bool one_order(const Shape& hwc) { return hwc[2] == 1 || hwc[0] * hwc[1] == 1; }

/// The usual numbers of channels of an image.
bool is_channels(std::int64_t extent) { return extent == 1 || extent == 3 || extent == 4; }

bool looks_channels_first(const Shape& sample) {
  return is_channels(sample[0]) && !is_channels(sample[2]);
}

bool is_flat_form(const Shape& sample, const std::optional<Shape>& wanted) {
  return sample.rank() == 1 && wanted && wanted->rank() == 3 &&
         wanted->elements() == sample.elements();
}

[[noreturn]] void ambiguous(const LayoutHints& hints, const std::string& message) {
  throw UserError(ErrorKind::config, hints.where, message, "say data.layout: nhwc or nchw");
}

std::optional<Layout> of_flat(const Shape& sample, const LayoutHints& hints) {
  if (!is_flat_form(sample, hints.wanted)) {
    if (!hints.declared) return std::nullopt;
    throw UserError(ErrorKind::config,
                    hints.where,
                    fmt::format("layout {} does not apply to samples of shape {}",
                                config::name_of(*hints.declared, config::k_data_layouts),
                                to_string(sample)));
  }
  if (hints.declared) return hints.declared;
  if (one_order(*hints.wanted)) return Layout::nhwc;
  if (hints.otherwise) return hints.otherwise;
  ambiguous(hints,
            fmt::format("flat samples of {} values can be {} (nhwc) or {} (nchw)",
                        sample.elements(),
                        to_string(*hints.wanted),
                        to_string(channels_first(*hints.wanted))));
}

}  // namespace

Shape channels_last(const Shape& s) { return {s[1], s[2], s[0]}; }

std::optional<Layout> find_layout(const Shape& sample, const LayoutHints& hints) {
  if (sample.rank() == 1) return of_flat(sample, hints);
  if (sample.rank() != 3) return std::nullopt;
  if (hints.declared) return hints.declared;
  const Shape turned = channels_last(sample);
  if (hints.wanted && hints.wanted->rank() == 3) {
    const bool as_stored = sample == *hints.wanted;
    const bool as_turned = turned == *hints.wanted;
    if (as_stored && as_turned && !one_order(turned)) {
      if (hints.otherwise) return hints.otherwise;
      ambiguous(hints,
                fmt::format("samples of shape {} fit the model's input {} as nhwc (height, width, "
                            "channels) and as nchw (channels, height, width)",
                            to_string(sample),
                            to_string(*hints.wanted)));
    }
    if (as_stored && looks_channels_first(sample) && !one_order(turned)) {
      if (hints.otherwise) return hints.otherwise;
      throw UserError(ErrorKind::config,
                      hints.where,
                      fmt::format("samples and the model's input are {}, which as nhwc is {} high "
                                  "and {} wide with {} channels, and looks like nchw with {}",
                                  to_string(sample),
                                  sample[0],
                                  sample[1],
                                  sample[2],
                                  sample[0]),
                      fmt::format("layers take [height, width, channels]: for nchw make "
                                  "model.input {}, else say data.layout: nhwc",
                                  to_string(turned)));
    }
    if (as_stored) return Layout::nhwc;
    if (as_turned) return Layout::nchw;
    return std::nullopt;
  }
  if (looks_channels_first(sample)) return Layout::nchw;
  if (is_channels(sample[2]) && !is_channels(sample[0])) return Layout::nhwc;
  return std::nullopt;
}

std::optional<Layout> find_label_layout(const Shape& label, const LayoutHints& hints) {
  if (label.rank() != 3) return std::nullopt;
  const std::optional<Layout> given = hints.declared ? hints.declared : hints.otherwise;
  if (!hints.wanted || hints.wanted->rank() != 3) return given;
  const bool as_stored = label == *hints.wanted;
  const bool as_turned = channels_last(label) == *hints.wanted;
  if (as_stored != as_turned) return as_stored ? Layout::nhwc : Layout::nchw;
  if (!as_stored || given || one_order(*hints.wanted)) return given;
  ambiguous(hints,
            fmt::format("labels of shape {} fit the model's output as nhwc (height, width, "
                        "channels) and as nchw (channels, height, width)",
                        to_string(label)));
}

std::string stored_as(const Shape& sample, Layout layout) {
  const bool turned = layout == Layout::nchw && sample.rank() == 3;
  return fmt::format("stored as {}, read as {}",
                     to_string(turned ? channels_first(sample) : sample),
                     config::name_of(layout, config::k_data_layouts));
}

Tensor to_nhwc(Tensor images, std::optional<Layout> stored, const std::optional<Shape>& wanted) {
  const std::int64_t samples = images.shape()[0];
  const Shape sample(images.shape().dims().subspan(1));
  if (is_flat_form(sample, wanted)) {
    const Shape form = stored == Layout::nchw ? channels_first(*wanted) : *wanted;
    images.reshape({samples, form[0], form[1], form[2]});
  }
  if (stored != Layout::nchw || images.shape().rank() != 4) return images;
  const Shape& from = images.shape();
  const auto channels = static_cast<std::size_t>(from[1]);
  const auto pixels = static_cast<std::size_t>(from[2] * from[3]);
  const std::size_t width = size_bytes(images.dtype());
  Tensor turned(images.dtype(), {samples, from[2], from[3], from[1]});
  parallel_for(samples, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t offset = static_cast<std::size_t>(i) * channels * pixels * width;
      const std::byte* planes = images.as<std::byte>() + offset;
      std::byte* to = turned.as<std::byte>() + offset;
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        for (std::size_t c = 0; c < channels; ++c, to += width) {
          std::memcpy(to, planes + (c * pixels + pixel) * width, width);
        }
      }
    }
  });
  return turned;
}

}  // namespace halfstep::data
