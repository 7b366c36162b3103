#include "backend/capabilities.h"

namespace halfstep::backend {

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
    case Isa::amx:
      return "amx";
  }
  return "unknown";
}

std::optional<Isa> isa_named(std::string_view text) {
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    if (name(isa) == text) return isa;
  }
  return std::nullopt;
}

std::vector<std::string> isa_names(const Capabilities& capabilities) {
  std::vector<std::string> names;
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    if (isa <= capabilities.isa) names.emplace_back(name(isa));
  }
  return names;
}

}  // namespace halfstep::backend
