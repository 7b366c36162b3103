// Effects of the rewrite that users notice, example by example.

#include <doctest/doctest.h>

#include <ostream>

#include "rewritten.h"

namespace halfstep::precision {
namespace {

constexpr std::string_view k_tail = R"(
  x      = Const
  i      = Const {dtype: int32}
  conv   = Conv2D(x, x)
  bias   = BiasAdd(conv, x)
  bn     = FusedBatchNormV3(bias, x, x, x, x)
  add    = AddV2(bn, x)
  relu   = Relu(add)
  soft   = Softmax(relu)
  out    = Identity(soft)
  preserve out
)";

}  // namespace

TEST_CASE("consequences: in float16 everything after the last matmul stays float32") {
  const Rewritten fp16(k_tail);
  CHECK(fp16.halves() == "conv");
  CHECK(fp16.result().casts.size() == 2);
}

TEST_CASE("consequences: in bfloat16 the infer ops after the last matmul follow") {
  const Rewritten bf16(k_tail, in_mode(Mode::bf16));
  CHECK(bf16.halves() == "conv bias bn add relu");
  CHECK(bf16.type("bn", "U") == "float32");
}

TEST_CASE("consequences: softmax in attention is 16-bit, at the classifier float32") {
  const Rewritten r(R"(
    q      = Const
    scores = BatchMatMulV2(q, q)
    scale  = Const
    scaled = Mul(scores, scale)
    soft   = Softmax(scaled)
    mixed  = BatchMatMulV2(soft, q)
    logits = MatMul(mixed, q)
    probs  = Softmax(logits)
    out    = Identity(probs)
    preserve out
  )");
  CHECK(r.halves() == "scores scaled soft mixed logits");
}

TEST_CASE("consequences: cross-entropy is float32 always") {
  for (Mode mode : {Mode::cuda, Mode::bf16, Mode::fp16_cpu}) {
    const Rewritten r(R"(
      x      = Const
      labels = Const {dtype: int32}
      logits = MatMul(x, x)
      xent   = SparseSoftmaxCrossEntropyWithLogits(logits, labels)
      back   = Mul(xent:1, x)
      dw     = MatMul(back, x)
    )",
                      in_mode(mode));
    CAPTURE(name(mode));
    CHECK(r.type("xent") == "float32");
    CHECK(r.paint("back") == "deny deny_spread");
    CHECK(r.halves() == "logits dw");
  }
}

TEST_CASE("consequences: a decomposed layer norm is float32 in float16, 16-bit in bfloat16") {
  constexpr std::string_view k_norm = R"(
    x     = Const
    axes  = Const {dtype: int32}
    eps   = Const
    a     = MatMul(x, x)
    mean  = Mean(a, axes)
    diff  = SquaredDifference(a, mean)
    var   = Mean(diff, axes)
    sum   = AddV2(var, eps)
    rsqrt = Rsqrt(sum)
    mul   = Mul(rsqrt, x)
    y     = Mul(a, mul)
    shift = Mul(mean, mul)
    sub   = Sub(x, shift)
    norm  = AddV2(y, sub)
    b     = MatMul(norm, x)
  )";
  const Rewritten fp16(k_norm);
  CHECK(fp16.type("mean") == "float32");
  CHECK(fp16.type("diff") == "float32");
  CHECK(fp16.type("rsqrt") == "float32");
  CHECK(fp16.type("norm") == "float32");
  CHECK(fp16.paint("norm") == "deny deny_spread");
  const Rewritten bf16(k_norm, in_mode(Mode::bf16));
  CHECK(bf16.halves() == "a mean diff var sum rsqrt mul y shift sub norm b");
}

TEST_CASE("consequences: GELU by Pow and tanh is float32 between matmuls, by Erf 16-bit") {
  const Rewritten tanh(R"(
    x = Const
    a = MatMul(x, x)
    p = Pow(a, x)
    m = Mul(p, x)
    s = AddV2(a, m)
    t = Tanh(s)
    y = Mul(t, a)
    b = MatMul(y, x)
  )");
  CHECK(tanh.halves() == "a b");
  const Rewritten erf(R"(
    x = Const
    a = MatMul(x, x)
    d = RealDiv(a, x)
    e = Erf(d)
    s = AddV2(e, x)
    y = Mul(s, a)
    b = MatMul(y, x)
  )");
  CHECK(erf.halves() == "a d e s y b");
}

TEST_CASE("consequences: a Sum in the backward pass drags what follows it to float32") {
  constexpr std::string_view k_backward = R"(
    x    = Const
    axes = Const {dtype: int32}
    a    = MatMul(x, x)
    y    = MatMul(x, x)
    sum  = Sum(a, axes)
    rs   = Reshape(sum, axes)
    relu = ReluGrad(rs, y)
    bn   = FusedBatchNormGradV3(relu, y, x, x, x, x)
    dw   = Conv2DBackpropFilter(y, axes, bn)
  )";
  const Rewritten r(k_backward);
  CHECK(r.paint("relu") == "deny deny_spread");
  CHECK(r.paint("bn") == "deny deny_spread");
  CHECK(r.reason("bn") == "`Sum` (sum) denied it");
  CHECK(r.halves() == "a y dw");

  RewriteOptions freed;
  ListEdits edits;
  edits.remove[static_cast<std::size_t>(List::deny)].push_back({"Sum", {}});
  edits.add[static_cast<std::size_t>(List::infer)].push_back({"Sum", {}});
  freed.edits = {edits};
  CHECK(Rewritten(k_backward, freed).halves() == "a y sum rs relu bn dw");
}

TEST_CASE("consequences: Rsqrt shields from deny in float16, Sqrt transmits it") {
  const Rewritten rsqrt(
      "x = Const\ne = Exp(x)\nr = Rsqrt(e)\na = MatMul(x, x)\ns = Add(r, a)\nb = MatMul(s, x)\n");
  CHECK(rsqrt.type("s") == "float16");
  const Rewritten sqrt(
      "x = Const\ne = Exp(x)\nr = Sqrt(e)\na = MatMul(x, x)\ns = Add(r, a)\nb = MatMul(s, x)\n");
  CHECK(sqrt.type("s") == "float32");
}

TEST_CASE("consequences: GatherV2 casts the whole table, ResourceGather none of it") {
  const Rewritten dense(R"(
    h     = VarHandleOp
    table = ReadVariableOp(h)
    ids   = Const {dtype: int32}
    rows  = GatherV2(table, ids, ids)
    a     = MatMul(rows, rows)
  )");
  CHECK(dense.inputs("rows") == "table-0-CastToFp16-0:0, ids:0, ids:0");
  CHECK(dense.result().casts_counted == 0);
  const Rewritten lookup(R"(
    h    = VarHandleOp
    ids  = Const {dtype: int32}
    rows = ResourceGather(h, ids)
    a    = MatMul(rows, rows)
  )");
  CHECK(lookup.type("rows", "dtype") == "float32");
  CHECK(lookup.inputs("a") == "rows-0-CastToFp16-0:0, rows-0-CastToFp16-0:0");
}

TEST_CASE("consequences: dropout's Mul between two matmuls is 16-bit, its mask is cast") {
  const Rewritten r(R"(
    x     = Const
    shape = Const {dtype: int32}
    rate  = Const
    a     = MatMul(x, x)
    rand  = RandomUniform(shape) {dtype: float32}
    keep  = GreaterEqual(rand, rate)
    mask  = Cast(keep) {DstT: float32}
    scale = Mul(a, x)
    drop  = Mul(scale, mask)
    b     = MatMul(drop, x)
  )");
  CHECK(r.halves() == "a mask scale drop b");
  CHECK(r.type("rand", "dtype") == "float32");
  CHECK(r.type("keep") == "float32");
  CHECK(r.inputs("drop") == "scale:0, mask:0");
}

TEST_CASE("consequences: weights are cast once, weight gradients cast back for the update") {
  const Rewritten r(R"(
    h      = VarHandleOp
    w      = ReadVariableOp(h)
    x      = Placeholder
    lr     = Const
    inv    = Const
    y      = MatMul(x, w)
    labels = Const {dtype: int32}
    loss   = SparseSoftmaxCrossEntropyWithLogits(y, labels)
    dy     = Mul(loss:1, lr)
    dw     = MatMul(x, dy) {transpose_a: true}
    dx     = MatMul(dy, w) {transpose_b: true}
    unscale = Mul(dw, inv)
    update = ResourceApplyGradientDescent(h, lr, unscale)
    out    = Identity(dx)
    preserve x, update, out
  )");
  CHECK(r.inputs("y") == "x-0-CastToFp16-0:0, w-0-CastToFp16-0:0");
  CHECK(r.inputs("dx") == "dy-0-CastToFp16-0:0, w-0-CastToFp16-0:0");
  CHECK(r.inputs("unscale") == "dw-0-CastToFp32-0:0, inv:0");
  CHECK(r.inputs("update") == "h:0, lr:0, unscale:0");
  CHECK(r.type("w", "dtype") == "float32");
  CHECK(r.type("update") == "float32");
}

TEST_CASE("consequences: tensor arrays of TensorFlow 1 stay float32") {
  const Rewritten r(R"(
    n    = Const {dtype: int32}
    x    = Const
    a    = MatMul(x, x)
    ta   = TensorArrayV3(n) {dtype: float32}
    w    = TensorArrayWriteV3(ta, n, a, ta:1)
    back = TensorArrayReadV3(ta, n, w) {dtype: float32}
    b    = MatMul(back, x)
  )");
  CHECK(r.halves() == "a b");
  CHECK(r.inputs("w") == "ta:0, n:0, a-0-CastToFp32-0:0, ta:1");
}

}  // namespace halfstep::precision
