#include "backend/cuda/vendor/real/device_properties.h"

namespace halfstep::backend::cuda::real {

DescriptorPtr device_properties(const std::string& json) {
  auto properties = std::make_shared<Descriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties->set(
      CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::span<const char>(json));
  properties->finalize();
  return properties;
}

std::string device_properties_json(int device) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, std::int32_t{device});
  properties.finalize();
  const auto get = [&](std::span<char> text) {
    return properties.get(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, text);
  };
  std::string text(static_cast<std::size_t>(get({})), '\0');
  get(text);
  return text;
}

}  // namespace halfstep::backend::cuda::real
