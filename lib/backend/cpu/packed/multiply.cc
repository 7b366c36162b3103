// PackedMatMul on a matrix unit.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backend/cpu/packed/epilogue.h"
#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/packed/product.h"

namespace halfstep::backend::cpu::packed {
Accepts accepts_product(const NodeView& node, const Capabilities& capabilities) {
  const std::string& forms = node.attrs().get<std::string>("forms");
  for (const char form : forms) {
    if (forms.find(form) != forms.rfind(form)) {
      return Accepts::no(fmt::format("form {} is asked for twice", form));
    }
  }
  const std::string& activation = node.attrs().get<std::string>("activation");
  if (!activation.empty() && activation != "Relu") return Accepts::no("no " + activation + " here");
  if (const auto packing = Packing::of_product(node, portable_blocks())) {
    const graph::Attrs& attrs = node.attrs();
    const Layout b{attrs.get<std::int64_t>("n"),
                   attrs.get<std::int64_t>("k"),
                   graph::ops::operand_format(attrs)};
    return packs_while_multiplying(*packing, b, capabilities.threads);
  }
  return Accepts::yes();
}

Prepared prepare_product(const NodeView& node,
                         const MicroKernel& unit,
                         const Blocks& blocks,
                         int threads) {
  const Product product = product_of(
      node.attrs(), unit, threads, Product::Tiles::long_rows, Packing::of_product(node, blocks));
  const Epilogue epilogue(node, blocks);
  return launch(
      [product, epilogue](const Args& args) {
        const Epilogue::Bound bound = epilogue.bind(args, args.workspace);
        product.run(
            args.in[0].as<std::byte>(),
            args.in[1].as<std::byte>(),
            args.workspace + epilogue.workspace_bytes(),
            [&](const float* sums, const Product::Place& at) { bound.finish(sums, at.i, at.j); },
            [&](std::int64_t) { bound.complete_part(); });
        bound.complete();
      },
      epilogue.workspace_bytes() + product.workspace_bytes());
}

}  // namespace halfstep::backend::cpu::packed
