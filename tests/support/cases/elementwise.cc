#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> cases;
  const Shape shape{3, 5, 7};
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const auto add = [&](std::string_view what,
                         std::string_view body,
                         std::vector<DType> results,
                         std::vector<Operand> inputs,
                         const Shape& over) {
      // Each step rounds to the dtype of its own: only a reference of the same dtypes does the
      // same.
      cases.push_back(
          {.name = fmt::format("FusedElementwise/{}, {}", what, name(dtype)),
           .op = "FusedElementwise",
           .attrs = {{"body",
                      graph::elementwise_body(fmt::format(fmt::runtime(body), name(dtype)))},
                     {"shape", over},
                     {"Tresults", std::move(results)}},
           .inputs = std::move(inputs),
           .check_gradient = false});
    };
    add("bias and activation",
        "BiasAdd x0 x1 : {0} ; LeakyRelu t0 alpha=0.25 : {0} -> t1",
        {dtype},
        {typed(uniform(shape), dtype), typed(uniform({7}), dtype)},
        shape);
    add("pixels",
        "Cast x0 : {0} ; Mul t0 x1 : {0} -> t1",
        {dtype},
        {indices({2, 1500}, 0, 256, DType::uint8), typed(number(1 / 255.0), dtype)},
        {2, 1500});
    add("dropout",
        "RandomUniformFromOrdinal x0 seed=-5 stream=12 : float32 ; GreaterEqual t0 x1 : bool ; "
        "Mul x2 x3 : {0} ; Cast t1 : {0} ; Mul t2 t3 : {0} -> t3 t4",
        {dtype, dtype},
        {indices({}, 0, 1000, DType::int64),
         typed(number(0.25), DType::float32),
         typed(uniform({2, 999}), dtype),
         typed(number(1 / 0.75), dtype)},
        {2, 999});
    // Bodies for which the CUDA backend has compiled kernels.
    const Shape packs{10, 48};
    const auto image = [&] { return typed(uniform(packs), dtype); };
    const Operand factor = typed(number(1.25), dtype), ordinal = indices({}, 0, 9, DType::int64);
    add("dropout of packs",
        "RandomUniformFromOrdinal x0 seed=-5 stream=12 : float32 ; GreaterEqual t0 x1 : bool ; "
        "Mul x2 x3 : {0} ; Cast t1 : {0} ; Mul t2 t3 : {0} -> t3 t4",
        {dtype, dtype},
        {ordinal, typed(number(0.25), DType::float32), image(), factor},
        packs);
    add("dropout of a ReLU",
        "Relu x0 : {0} ; RandomUniformFromOrdinal x1 seed=3 stream=1 : float32 ; "
        "GreaterEqual t1 x2 : bool ; Mul t0 x3 : {0} ; Cast t2 : {0} ; Mul t3 t4 : {0} -> t0 t4 t5",
        {dtype, dtype, dtype},
        {image(), ordinal, typed(number(0.5), DType::float32), factor},
        packs);
    add("gradient of a dropout",
        "Mul x0 x1 : {0} ; Mul t0 x2 : {0} -> t1",
        {dtype},
        {image(), image(), factor},
        packs);
    add("gradient of a dropout of a ReLU",
        "Mul x0 x1 : {0} ; Mul t0 x2 : {0} ; ReluGrad t1 x3 : {0} -> t2",
        {dtype},
        {image(), image(), factor, image()},
        packs);
    add("gradient of a ReLU of a sum",
        "AddV2 x0 x1 : {0} ; ReluGrad t0 x2 : {0} -> t1",
        {dtype},
        {image(), image(), image()},
        packs);
    add("gradient of a mean of a ReLU",
        "BroadcastTo x0 : {0} ; RealDiv t0 x1 : {0} ; ReluGrad t1 x2 : {0} -> t2",
        {dtype},
        {typed(uniform({1, 48}), dtype), factor, image()},
        packs);
    add("gradient of a mean of each row",
        "BroadcastTo x0 : {0} ; RealDiv t0 x1 : {0} ; ReluGrad t1 x2 : {0} -> t2",
        {dtype},
        {typed(uniform({10, 1}), dtype), factor, image()},
        packs);
    add("bias and Gelu",
        "BiasAdd x0 x1 : {0} ; Gelu t0 : {0} -> t0 t1",
        {dtype, dtype},
        {image(), typed(uniform({48}), dtype)},
        packs);
    add("bias and residual",
        "BiasAdd x0 x1 : {0} ; AddV2 x2 t0 : {0} -> t1",
        {dtype},
        {image(), typed(uniform({48}), dtype), image()},
        packs);
    add("noise",
        "RandomUniformFromOrdinal x0 seed=-5 stream=12 : float32 ; Mul t0 x1 : float32 ; "
        "AddV2 t1 x2 : float32 ; Erfinv t2 : float32 ; Mul t3 x3 : float32 ; Cast t4 : {0} ; "
        "Mul t5 x4 : {0} ; AddV2 x5 t6 : {0} -> t7",
        {dtype},
        {indices({}, 0, 1000, DType::int64),
         typed(number(2), DType::float32),
         typed(number(0x1p-24 - 1), DType::float32),
         typed(number(1.4142135623730951), DType::float32),
         typed(number(0.5), dtype),
         typed(uniform({2, 999}), dtype)},
        {2, 999});
    // Roundings of normal numbers that differ in the last places of float32.
    cases.back().rounds_inside = is_half(dtype);
    add("two casts",
        "Relu x0 : {0} ; Cast x0 : float32 ; Cast x0 : bfloat16 ; Square t1 : float32 -> t0 t1 t2 "
        "t3",
        {dtype, DType::float32, DType::bfloat16, DType::float32},
        {typed(special(shape), dtype)},
        shape);
    add("every result",
        "Mul x0 x1 : {0} ; AddV2 t0 x2 : {0} ; ReluGrad t1 x0 : {0} ; Greater t2 x1 : bool -> t0 "
        "t1 "
        "t2 t3",
        {dtype, dtype, dtype, DType::boolean},
        {typed(special(shape), dtype),
         typed(uniform({5, 1}), dtype),
         typed(uniform({3, 1, 7}), dtype)},
        shape);
  }
  return cases;
}

}  // namespace halfstep::testing
