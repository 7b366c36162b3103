#include "precision/paint.h"

#include <doctest/doctest.h>

#include <ostream>

#include "rewritten.h"

namespace halfstep::precision {

TEST_CASE("paint: allow ops are seeds on every type attribute, and lose what cannot be 16-bit") {
  const Rewritten r(R"(
    sizes = Const {dtype: int32}
    x     = Const
    conv  = Conv2DBackpropInput(sizes, x, x)
    exact = MatMul(d, d)
    d     = Const {dtype: float64}
    out   = Identity(conv)
    preserve out
  )");
  CHECK(r.paint("conv") == "allow allow_seed");
  CHECK(r.paint("conv", "int32") == "none unpainted");
  CHECK(r.reason("conv", "int32") == "`Conv2DBackpropInput` does not allow float16 for int32");
  CHECK(r.paint("exact") == "allow allow_seed");
  CHECK(r.type("exact") == "float64");
  CHECK(r.halves() == "conv");
}

TEST_CASE("paint: infer ops are converted only between two allow ops") {
  const Rewritten r(R"(
    x      = Const
    before = BiasAdd(x, x)
    a      = MatMul(before, x)
    middle = BiasAdd(a, x)
    clear  = Relu(middle)
    b      = MatMul(clear, x)
    after  = BiasAdd(b, x)
    relu   = Relu(after)
    out    = Identity(relu)
    preserve out
  )");
  CHECK(r.halves() == "a middle clear b");
  CHECK(r.paint("before") == "none none");
  CHECK(r.paint("middle") == "allow between_allows");
  CHECK(r.paint("clear") == "allow between_allows");
  CHECK(r.paint("after") == "none none");
  CHECK(r.reason("after") == "a converted op precedes it, but none follows");
  CHECK(r.paint("relu") == "none none");
  CHECK(r.reason("middle") == "it is between allow ops, before `MatMul` (b)");
}

TEST_CASE("paint: an unlisted op between two allow ops stays and blocks the path") {
  const Rewritten r(R"(
    x = Const
    a = MatMul(x, x)
    i = Tanh(a)
    u = Cumsum(i, axis)
    axis = Const {dtype: int32}
    j = Tanh(u)
    b = MatMul(j, x)
  )");
  CHECK(r.halves() == "a b");
  CHECK(r.reason("u") == "`Cumsum` is on no list, so it keeps its dtype");
}

TEST_CASE("paint: deny runs forward through infer ops, and through clear ops toward one") {
  const Rewritten r(R"(
    x      = Const
    a      = MatMul(x, x)
    exp    = Exp(a)
    infer  = AddV2(exp, a)
    clear1 = Relu(infer)
    infer2 = Tanh(clear1)
    clear2 = Relu(infer2)
    b      = MatMul(clear2, x)
    side   = Relu(exp)
    c      = MatMul(side, x)
  )");
  CHECK(r.paint("exp") == "deny deny_spread");
  CHECK(r.reason("exp") == "`Exp` is on the deny list");
  CHECK(r.paint("infer") == "deny deny_spread");
  CHECK(r.reason("infer") == "`Exp` (exp) denied it");
  CHECK(r.paint("clear1") == "deny deny_spread");
  CHECK(r.paint("infer2") == "deny deny_spread");
  // Clear ops that lead to no infer or deny op are not denied and join the allow ops.
  CHECK(r.paint("clear2") == "allow clear_spread");
  CHECK(r.paint("side") == "allow clear_spread");
  CHECK(r.halves() == "a clear2 b side c");
}

TEST_CASE("paint: allow ops and unlisted ops stop deny") {
  const Rewritten r(R"(
    x     = Const
    exp   = Exp(x)
    a     = MatMul(exp, x)
    infer = AddV2(a, x)
    b     = MatMul(infer, x)
    rsqrt = Rsqrt(exp)
    add   = AddV2(rsqrt, b)
    c     = MatMul(add, x)
  )");
  CHECK(r.paint("infer") == "allow between_allows");
  // Rsqrt is on no fp16 list and blocks propagation to the ops after it.
  CHECK(r.paint("add") == "allow between_allows");
}

TEST_CASE("paint: deny does not touch what feeds a deny op") {
  const Rewritten r(R"(
    x   = Const
    a   = MatMul(x, x)
    add = AddV2(a, x)
    b   = MatMul(add, x)
    exp = Exp(add)
  )");
  CHECK(r.paint("add") == "allow between_allows");
}

TEST_CASE("paint: deny travels through preserved nodes and nodes on other devices") {
  const Rewritten r(R"(
    x    = Const
    exp  = Exp(x)
    kept = AddV2(exp, x)
    far  = AddV2(kept, x) @CPU
    near = AddV2(far, a)
    a    = MatMul(x, x)
    b    = MatMul(near, x)
    preserve kept
  )");
  CHECK(r.paint("kept") == "deny deny_spread");
  CHECK(r.paint("far") == "deny deny_spread");
  CHECK(r.paint("near") == "deny deny_spread");
}

TEST_CASE("paint: paint never crosses from one type attribute of a node to another") {
  const Rewritten r(R"(
    x    = Const
    exp  = Exp(x)
    cast = Cast(exp) {SrcT: float32, DstT: float32}
    add  = AddV2(cast, a)
    a    = MatMul(x, x)
    b    = MatMul(add, x)
    big  = Greater(exp, x)
    pick = SelectV2(big, a, x)
    c    = MatMul(pick, x)
  )");
  CHECK(r.paint("add") == "allow between_allows");
  CHECK(r.paint("big") == "none none");
  CHECK(r.paint("big", "bool") == "none none");
  CHECK(r.paint("pick") == "allow between_allows");
}

TEST_CASE("paint: deny passes along hard-wired dtypes") {
  // IsFinite's bool leads to a Select, whose bool leads nowhere: only T of Select is infer's.
  const Rewritten r(R"(
    x    = Const
    size = Mean(x, axes)
    axes = Const {dtype: int32}
    a    = MatMul(x, x)
    loss = SparseSoftmaxCrossEntropyWithLogits(a, labels)
    labels = Const {dtype: int32}
    grad = Mul(loss:1, scale)
    scale = Const
    b    = MatMul(grad, x)
  )");
  CHECK(r.paint("loss") == "deny deny_spread");
  CHECK(r.paint("loss", "Tlabels") == "deny deny_spread");
  CHECK(r.paint("grad") == "deny deny_spread");
  CHECK(r.halves() == "a b");
}

TEST_CASE("paint: clear spreads both ways from converted ops") {
  const Rewritten r(R"(
    x    = Const
    up1  = Relu(x)
    up2  = Reshape(up1, s)
    s    = Const {dtype: int32}
    a    = MatMul(up2, x)
    down = Identity(a)
    last = MaxPool(down)
    side = Relu(up1)
  )");
  CHECK(r.halves() == "up1 up2 a down last side");
  CHECK(r.paint("side") == "allow clear_spread");
  CHECK(r.type("up2", "Tshape") == "int32");
}

TEST_CASE("paint: clear does not spread through what cannot be 16-bit or has no kernel") {
  const Rewritten r(R"(
    x   = Const
    a   = MatMul(x, x)
    c   = CheckNumerics(a)
    r   = Relu(c)
    t   = Tanh(a)
    b   = MatMul(t, x)
    no_kernel CheckNumerics float16
    no_kernel Tanh float16
  )");
  CHECK(r.halves() == "a b");
  CHECK(r.reason("c") == "`CheckNumerics` has no float16 kernel");
  CHECK(r.reason("r") == "no converted op reaches it through clear ops");
  CHECK(r.reason("t") == "`Tanh` has no float16 kernel");
}

TEST_CASE("paint: reads of ref variables keep their dtype") {
  const Rewritten r(R"(
    v    = VariableV2
    read = Identity(v)
    in   = Enter(read) {frame_name: f}
    in2  = Enter(in) {frame_name: g}
    a    = MatMul(read, in2)
    x    = Const
    ok   = Identity(x)
    b    = MatMul(ok, x)
  )");
  CHECK(r.halves() == "a ok b");
  CHECK(r.reason("read") == "it reads a ref variable, which must stay as it is");
}

TEST_CASE("paint: mode bf16 converts infer ops right after a converted op, in line order") {
  constexpr std::string_view k_chain = R"(
    x     = Const
    a     = MatMul(x, x)
    bias  = BiasAdd(a, x)
    add   = AddV2(bias, x)
    relu  = Relu(add)
    tanh  = Tanh(relu)
    out   = Identity(tanh)
    preserve out
  )";
  const Rewritten bf16(k_chain, in_mode(Mode::bf16));
  CHECK(bf16.halves() == "a bias add relu");
  CHECK(bf16.paint("bias") == "allow infer_after_allow");
  CHECK(bf16.reason("add") == "it follows `BiasAdd` (bias), which is converted");
  // Clear ops are painted after this pass, so the op after one is not reached.
  CHECK(bf16.paint("relu") == "allow clear_spread");
  CHECK(bf16.paint("tanh") == "none none");
  CHECK(bf16.reason("tanh") == "no converted op is right before it");
  CHECK(Rewritten(k_chain).halves() == "a");
  CHECK(Rewritten(k_chain, in_mode(Mode::fp16_cpu)).halves() == "a");

  const Rewritten reversed(R"(
    add   = AddV2(bias, x)
    bias  = BiasAdd(a, x)
    a     = MatMul(x, x)
    x     = Const
  )",
                           in_mode(Mode::bf16));
  CHECK(reversed.halves() == "bias a");
}

TEST_CASE("paint: mode bf16 leaves an infer op alone that also reads a denied value") {
  const Rewritten r(R"(
    x   = Const
    a   = MatMul(x, x)
    exp = Exp(x)
    add = AddV2(a, exp)
    two = AddV2(a, x)
    no_kernel AddV2 bfloat16
  )",
                    in_mode(Mode::bf16));
  CHECK(r.paint("add") == "deny deny_spread");
  // This rule checks declared types, not kernels.
  CHECK(r.paint("two") == "allow infer_after_allow");
}

TEST_CASE("paint: quantized allow ops are left alone") {
  RewriteOptions options = in_mode(Mode::bf16);
  ListEdits edits;
  edits.add[0].push_back({"QuantizeV2", {}});
  options.edits = {edits};
  const Rewritten r(R"(
    x = Const
    q = QuantizeV2(x, x, x) {T: quint8}
    a = MatMul(x, x)
  )",
                    options);
  CHECK(r.paint("q") == "none unpainted");
  CHECK(r.halves() == "a");
}

TEST_CASE("paint: NextIteration and its Merges agree") {
  SUBCASE("all converted") {
    const Rewritten r(R"(
      x     = Const
      enter = Enter(x) {frame_name: f}
      merge = Merge(enter, next)
      a     = MatMul(merge, x)
      next  = NextIteration(a)
      exit  = Exit(merge)
      out   = Identity(exit)
      preserve out
    )");
    CHECK(r.halves() == "enter merge a next exit");
  }
  SUBCASE("a Merge that is not converted keeps the others and the NextIteration") {
    const Rewritten r(R"(
      x     = Const
      enter = Enter(x) {frame_name: f}
      merge = Merge(enter, next)
      m2    = Merge(kept, next)
      kept  = Enter(x) {frame_name: f}
      a     = MatMul(merge, x)
      next  = NextIteration(a)
      preserve m2
    )");
    CHECK(r.paint("merge") == "none loop");
    CHECK(r.paint("next") == "none loop");
    CHECK(r.reason("merge") == "`Merge` (m2) of the same loop is not converted");
    CHECK(r.halves() == "enter a");
    CHECK(r.inputs("merge") == "enter-0-CastToFp32-0:0, next:0");
    CHECK(r.inputs("next") == "a-0-CastToFp32-0:0");
  }
  SUBCASE("a converted Merge takes the NextIteration along") {
    const Rewritten r(R"(
      x     = Const
      enter = Enter(x) {frame_name: f}
      merge = Merge(enter, next)
      a     = MatMul(merge, x)
      keep  = Cumsum(a, axis)
      axis  = Const {dtype: int32}
      next  = NextIteration(keep)
      no_kernel NextIteration float16
    )");
    CHECK(r.paint("next") == "allow loop");
    CHECK(r.inputs("next") == "keep-0-CastToFp16-0:0");
    CHECK(r.inputs("merge") == "enter:0, next:0");
  }
  SUBCASE("NextIteration must feed Merges") {
    const Rewritten r(R"(
      x     = Const
      enter = Enter(x) {frame_name: f}
      a     = MatMul(enter, x)
      next  = NextIteration(a)
      bad   = Identity(next)
    )");
    CHECK(r.status() == "failed");
    CHECK(r.result().message == "Expected Merge node after NextIteration, got Identity");
    CHECK(r.halves().empty());
  }
}

TEST_CASE("paint: existing casts to float32 cast to 16 bits when only converted ops read them") {
  const Rewritten r(R"(
    x     = Const
    flags = Const {dtype: bool}
    mask  = Cast(flags) {DstT: float32}
    a     = MatMul(mask, x)
    b     = MatMul(x, mask)
    split = Cast(flags) {DstT: float32}
    c     = MatMul(split, x)
    other = Cumsum(split, axis)
    axis  = Const {dtype: int32}
    alone = Cast(flags) {DstT: float32}
    kept  = Cast(flags) {DstT: float32}
    d     = MatMul(kept, x)
    preserve alone, kept
  )");
  CHECK(r.type("mask", "DstT") == "float16");
  CHECK(r.type("mask", "SrcT") == "bool");
  CHECK(r.paint("mask", "DstT") == "allow existing_cast");
  CHECK(r.type("split", "DstT") == "float32");
  CHECK(r.type("alone", "DstT") == "float32");
  // TensorFlow checks neither the device nor the preserve set here.
  CHECK(r.type("kept", "DstT") == "float16");
}

TEST_CASE("paint: unsafe_force_all paints everything but constants and what must not be") {
  RewriteOptions options;
  options.level = Level::unsafe_force_all;
  const Rewritten r(R"(
    function Func
    x    = Const
    exp  = Exp(x)
    sum  = Sum(exp, axes)
    axes = Const {dtype: int32}
    xent = SoftmaxCrossEntropyWithLogits(sum, x)
    v    = VariableV2
    rand = RandomUniform(axes) {dtype: float32}
    f    = Func(x)
    far  = Exp(x) @CPU
    add  = Cumsum(exp, axes)
    out  = Identity(add)
    preserve out
  )",
                    options);
  CHECK(r.halves() == "exp sum add");
  CHECK(r.paint("exp") == "allow forced");
  CHECK(r.paint("far") == "none unprocessed");
  CHECK(r.paint("xent") == "none none");

  // An op's hard-wired float32 cannot change, which spoils the whole rewrite.
  const Rewritten failed(R"(
    x = Const
    m = SparseMatMul(x, x)
  )",
                         options);
  CHECK(failed.status() == "failed");
  CHECK(failed.type("m", "Ta") == "float32");
}

TEST_CASE("paint: reasons name the layer of the op that denied") {
  const Rewritten r(R"(
    x   = Const
    exp = Sum(x, axes) {_layer: "dense_2", _phase: backward}
    axes = Const {dtype: int32}
    add = AddV2(exp, a)
    a   = MatMul(x, x)
    b   = MatMul(add, x)
  )");
  CHECK(r.reason("add") == "`Sum` in dense_2's backward pass (exp) denied it");
}

}  // namespace halfstep::precision
