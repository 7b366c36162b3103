// `explain` of a config as a reader sees it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ostream>
#include <set>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

constexpr std::string_view k_network = R"(
    - {type: reshape, target_shape: [28, 28, 1]}
    - {type: conv2d, filters: 8, kernel_size: 3, name: conv}
    - {type: batch_normalization, name: norm}
    - {type: relu, name: act}
    - {type: conv2d, filters: 8, kernel_size: 3, name: deep}
    - {type: global_average_pooling2d, name: pool}
    - {type: dropout, rate: 0.5, name: drop}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32, name: output}
)";

struct Folder : RunFolder {
  Folder() : RunFolder({.layers = std::string(k_network)}) {}
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

const std::vector<std::string> k_float16{"--rewrite", "auto", "--set", "precision.target=float16"};

std::vector<std::string> float16(const std::vector<std::string>& more) {
  std::vector<std::string> words = k_float16;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("explain: layers as headings, casts in sight, no line wider than a page") {
  const Folder folder;
  const std::vector<std::string> none, each{"-v"}, ranks{"--ranks", "4"},
      both{"-v", "--ranks", "4"};
  for (const std::vector<std::string>& more : {none, each, ranks, both}) {
    const std::string table = folder.explain(float16(more));
    std::size_t start = 0;
    for (std::size_t end; (end = table.find('\n', start)) != std::string::npos; start = end + 1) {
      CHECK(end - start <= 100);
    }
    for (std::string_view part :
         {"\nconv\n", "\nnorm\n", "  cast kernel ", "\nloss\n", "\ncasts "}) {
      CAPTURE(part);
      CHECK(contains(table, part));
    }
    const bool verbose = !more.empty() && more.front() == "-v";
    CHECK(contains(table, "\nconv, backward\n") == verbose);
    CHECK(contains(table, "\n4 ranks ") == (more.size() > 1));
  }
}

TEST_CASE("explain: the op that denied is named, and the edit that frees what it denied works") {
  const Folder folder;
  const std::string table = folder.explain(k_float16);
  CHECK(contains(table, "denied by pool's Mean"));
  CHECK(contains(table, "hint W205"));
  const std::vector<std::string> edit{
      "--set", "precision.lists.deny.remove=[Mean]", "--set", "precision.lists.infer.add=[Mean]"};
  const Json before = Json::parse(folder.explain(float16({"--json"})));
  std::vector<std::string> words = float16(edit);
  words.emplace_back("--json");
  const Json after = Json::parse(folder.explain(words));
  const Json& hints = before.at("hints");
  const auto hint = std::find_if(
      hints.begin(), hints.end(), [](const Json& h) { return h.at("code") == "W205"; });
  REQUIRE(hint != hints.end());
  const int more = after.at("rewrite").at("nodes_converted").get<int>() -
                   before.at("rewrite").at("nodes_converted").get<int>();
  CHECK(more > 0);
  CHECK(contains(hint->at("message"), std::to_string(more) + " more op"));
  CHECK_FALSE(contains(folder.explain(float16(edit)), "hint W205"));
}

TEST_CASE("explain: the JSON has list, step, cause and bytes of every op, and its sums agree") {
  const Folder folder;
  const Json report = Json::parse(folder.explain(float16({"--json"})));
  std::set<std::string> names;
  double cast_bytes = 0, flops = 0;
  for (const Json& op : report.at("ops")) {
    CHECK(names.insert(op.at("name")).second);
    cast_bytes += op.at("cast_bytes").get<double>();
    flops += op.at("flops").get<double>();
    if (op.at("name") == "drop/Mul") {
      CHECK(op.at("list") == "infer");
      CHECK(op.at("step") == "deny_spread");
      CHECK(op.at("cause") == "pool/Mean");
    }
    if (op.at("name") == "conv/Conv2D") {
      CHECK(op.at("list") == "allow");
      CHECK(op.at("compute_dtype") == "float16");
      CHECK(op.at("accumulate_dtype") == "float32");
    }
  }
  CHECK(names.contains("drop/Mul"));
  CHECK(report.at("cast_bytes") == doctest::Approx(cast_bytes));
  CHECK(report.at("flops_per_step") == doctest::Approx(flops));
}

TEST_CASE("explain: a step of several ranks has its messages, on an absent GPU too") {
  const Folder folder;
  const auto messages = [&](std::vector<std::string> words) {
    words.emplace_back("--json");
    return Json::parse(folder.explain(words)).at("rank_messages");
  };
  CHECK(messages({}).is_null());
  CHECK(messages({"--ranks", "1"}).is_null());
  for (const std::vector<std::string>& arch : {std::vector<std::string>{}, {"--arch", "sm_90"}}) {
    std::vector<std::string> words = arch;
    words.insert(words.end(), {"--ranks", "4", "--set", "parallel.sync_batch_norm=true"});
    const Json all = messages(words);
    CHECK(all.at("ranks") == 4);
    std::map<std::string, int> of_norm;
    std::set<std::string> of_gradients;
    for (const Json& message : all.at("messages")) {
      // 3 of 4 parts in each half of a sum, 4 bytes a number; all of them to 3 ranks where they are
      // few, and MPI carries them.
      const double numbers = message.at("numbers");
      const bool whole = arch.empty() && 4 * 4 * numbers <= 64 << 10;
      CHECK(message.at("sent_bytes") == (whole ? 3 * 4 : 2 * 3) * numbers);
      CHECK(message.at("exchange") == "AllReduce");
      if (contains(message.at("reason").get<std::string>(), "gradients ")) {
        for (const Json& layer : message.at("layers")) of_gradients.insert(layer);
      }
      if (message.at("layers") != Json{"norm"}) continue;
      ++of_norm[message.at("phase")];
      // Mean and variance of 8 channels for each rank; two sums of gradients.
      const bool forward = message.at("phase") == "forward";
      CHECK(message.at("numbers") == (forward ? 4 * 2 * 8 : 2 * 8));
    }
    CHECK(of_norm == std::map<std::string, int>{{"backward", 1}, {"forward", 1}});
    CHECK(of_gradients == std::set<std::string>{"conv", "deep", "logits", "norm"});
    words.insert(words.end(), {"--set", "parallel.shard=optimizer"});
    const Json divided = messages(words);
    std::set<std::string> kinds;
    for (const Json& message : divided.at("messages")) kinds.insert(message.at("exchange"));
    CHECK(kinds == std::set<std::string>{"AllGather", "AllReduce", "ReduceScatter"});
  }
  CHECK(contains(folder.explain({"--ranks", "0"}, 2), "--ranks"));
}

TEST_CASE("explain: a layer of volumes is one op of TensorFlow, whose list decides") {
  const RunFolder folder({.layers = R"(
    - {type: reshape, target_shape: [4, 14, 14, 1]}
    - {type: conv3d, filters: 4, kernel_size: 3, name: first}
    - {type: max_pooling3d, pool_size: [1, 2, 2], name: largest}
    - {type: conv3d, filters: 4, kernel_size: 2, padding: same, name: second}
    - {type: average_pooling3d, pool_size: 2, name: mean}
    - {type: flatten}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32, name: output}
)"});
  const auto ops = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = float16(more);
    words.emplace_back("--json");
    return Json::parse(folder.explain(words)).at("ops");
  };
  const Json standard = ops({});
  const auto types = [&](std::string_view layer, std::string_view phase) {
    std::multiset<std::string> all;
    for (const Json& op : standard) {
      const std::string type = op.at("type");
      if (op.at("layer") == layer && op.at("phase") == phase && type != "Cast") all.insert(type);
    }
    return all;
  };
  using Types = std::multiset<std::string>;
  CHECK(types("first", "forward") == Types{"BiasAdd", "Conv3D"});
  CHECK(types("first", "backward") == Types{"BiasAddGrad", "Conv3DBackpropFilterV2"});
  CHECK(types("largest", "forward") == Types{"MaxPool3D"});
  CHECK(types("largest", "backward") == Types{"MaxPool3DGrad"});
  CHECK(types("second", "forward") == Types{"BiasAdd", "Conv3D"});
  CHECK(types("second", "backward") ==
        Types{"BiasAddGrad", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2"});
  CHECK(types("mean", "forward") == Types{"AvgPool3D"});
  CHECK(types("mean", "backward") == Types{"AvgPool3DGrad"});
  const auto facts = [](const Json& all, std::string_view key) {
    for (const Json& op : all) {
      if (op.at("type") == "Conv3D") return op.at(std::string(key)).get<std::string>();
    }
    return std::string();
  };
  CHECK(facts(standard, "reason") == "`Conv3D` is on the allow list");
  CHECK(facts(standard, "compute_dtype") == "float16");
  CHECK(facts(standard, "accumulate_dtype") == "float32");
  const Json without = ops({"--set", "precision.lists.allow.remove=[Conv3D]"});
  CHECK(facts(without, "compute_dtype") == "float32");
}

TEST_CASE("explain: the hardware of --arch decides about units and hints") {
  const Folder folder;
  const std::vector<std::string> rewrite{"--rewrite", "auto", "--arch"};
  const auto on = [&](const std::string& arch) {
    std::vector<std::string> words = rewrite;
    words.push_back(arch);
    return folder.explain(words);
  };
  const std::string gpu = on("sm_70");
  CHECK(contains(gpu, "rewrite to float16, sm_70"));
  CHECK(contains(gpu, "tensor cores"));
  CHECK(contains(gpu, "cudnn/convolution"));
  CHECK(contains(gpu, "cuda/cast"));
  CHECK(contains(gpu, "pad input channels 1 (to 8)"));
  CHECK_FALSE(contains(gpu, "vector/"));
  const std::string json = folder.explain({"--arch", "sm_70", "--json"});
  CHECK(contains(json, R"("kernel": "cublaslt/fused_matmul")"));
  CHECK(contains(json, R"("kernel": "cuda/update")"));
  CHECK(contains(folder.explain({"--arch", "sm_90", "--format", "dot"}),
                 "kernel cublaslt/fused_matmul on CUDA cores\""));
  CHECK(contains(on("sm_60"), "hint W209"));
  CHECK(contains(on("sm_60"), "hint W206"));
  CHECK(contains(folder.explain({"--policy", "mixed_bfloat16", "--arch", "sm_70"}), "hint W206"));
  CHECK(contains(folder.explain({"--arch", "sm-70"}, 2), "unknown architecture 'sm-70'"));
}

TEST_CASE("explain: a GPU of --arch need not be present") {
  const RunFolder folder;
  const std::string text =
      folder.explain({"--arch", "sm_90", "--set", "device=cuda", "--policy", "mixed_float16"});
  CHECK(holds(text, "sm_90"));
}

TEST_CASE("explain: AMX has a unit for both 16-bit dtypes, other sets for one or none") {
  const Folder folder;
  const auto on = [&](const char* policy, const char* arch) {
    return folder.explain({"--policy", policy, "--arch", arch});
  };
  const std::string half = on("mixed_float16", "amx");
  CHECK(contains(half, "cpu with amx"));
  for (const std::string& amx : {half, on("mixed_bfloat16", "amx")}) {
    CHECK(contains(amx, "AMX tiles work in multiples of 32"));
    CHECK_FALSE(contains(amx, "hint W206"));
  }
  CHECK(contains(on("mixed_float16", "avx512_bf16"), "avx512_bf16 multiplies no float16"));
  CHECK(contains(on("mixed_bfloat16", "avx512"), "avx512 multiplies no bfloat16"));
  CHECK_FALSE(contains(on("mixed_bfloat16", "avx512_bf16"), "hint W206"));
}

TEST_CASE("explain: Graphviz has an edge wherever an op reads another") {
  const Folder folder;
  const std::string dot = folder.explain(float16({"--format", "dot"}));
  CHECK(dot.starts_with("digraph step {"));
  CHECK(contains(dot, "label=\"conv\""));
  CHECK(contains(dot, "label=\"cast to f16\", shape=ellipse"));
  const auto node = [&](const std::string& tooltip) {
    const std::size_t at = dot.find("tooltip=\"" + tooltip);
    REQUIRE(at != std::string::npos);
    const std::size_t start = dot.rfind("\n    ", at) + 5;
    return dot.substr(start, dot.find(' ', start) - start);
  };
  const auto edge = [&](const std::string& from, const std::string& to) {
    return contains(dot, "  " + node(from) + " -> " + node(to) + " [");
  };
  CHECK(edge("conv/BiasAdd", "norm/FusedBatchNormV3"));
  CHECK(edge("norm/FusedBatchNormV3", "act/Relu"));
  CHECK_FALSE(edge("conv/BiasAdd", "act/Relu"));
}

TEST_CASE("explain: two policies differ in the ops that are listed") {
  const Folder folder;
  const std::string table = folder.explain({"--diff", "float32", "mixed_bfloat16"});
  CHECK(contains(table, "float32 mixed_bfloat16"));
  CHECK(contains(table, "\nconv\n  Conv2D                f32     bf16"));
  CHECK(contains(folder.explain({"--diff", "float32", "float32"}), "no op differs"));
  CHECK(contains(folder.explain({"--diff", "float32", "mixed_bfloat61"}, 2), "mixed_bfloat16"));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--format", "dot"}, {"--policy", "float16"}}) {
    std::vector<std::string> words{"--diff", "float32", "mixed_bfloat16"};
    words.insert(words.end(), more.begin(), more.end());
    CHECK(contains(folder.explain(words, 2), more[0] + ": error: "));
  }
}

TEST_CASE("rewrite: a 16-bit policy beside it ends with 2 in any order, of one layer too") {
  const Folder folder;
  const std::vector<std::vector<std::string>> rows{
      {"--policy", "mixed_float16", "--rewrite", "auto"},
      {"--rewrite", "auto", "--policy", "mixed_bfloat16"},
      {"--rewrite", "auto", "--set", "model.layers[conv].dtype=mixed_bfloat16"},
      {"--set", "precision.overrides=[{match: deep, dtype: mixed_float16}]", "--rewrite", "auto"},
      {"--set", "precision.overrides=[{match: 're:con.', dtype: float16}]", "--rewrite", "auto"},
  };
  for (const std::vector<std::string>& words : rows) {
    CAPTURE(words.back());
    CHECK(contains(folder.explain(words, 2), "use one of the two"));
  }
}

TEST_CASE("rewrite: list edits that cannot be are refused with the nearest name") {
  const Folder folder;
  CHECK(contains(folder.explain(float16({"--set", "precision.lists.allow.add=[Softmaks]"}), 2),
                 "did you mean 'Softmax'"));
  CHECK(contains(folder.explain(float16({"--set", "precision.lists.allow.add=[Softmax]"}), 2),
                 "Softmax is on the lists allow and infer"));
}

TEST_CASE("rewrite: by TensorFlow 2.20's rules gradients are unscaled in float16, with a warning") {
  const Folder folder;
  const auto older = folder.explain(float16({"--tensorflow", "2.19"}));
  CHECK(older == folder.explain(k_float16));
  CHECK_FALSE(contains(older, "W211"));
  CHECK_FALSE(contains(older, "by the rules of TensorFlow 2.20+"));
  const auto newer = folder.explain(float16({"--tensorflow", "2.20+"}));
  CHECK(newer == folder.explain(float16({"--set", "precision.rewrite_rules=2.20+"})));
  CHECK(contains(newer, "rewrite to float16 by the rules of TensorFlow 2.20+"));
  CHECK(contains(newer, "hint W211"));
  CHECK(contains(newer, "16-bit ops or right after one"));

  const Json report = Json::parse(folder.explain(float16({"--tensorflow", "2.20+", "--json"})));
  int unscalings = 0;
  for (const Json& op : report.at("ops")) {
    const bool unscales = op.at("phase") == "unscale" && op.at("type") == "Mul";
    if (unscales && op.at("out_dtype") == "float16") ++unscalings;
  }
  REQUIRE(unscalings >= 2);
  std::string message;
  for (const Json& hint : report.at("hints")) {
    if (hint.at("code") == "W211") message = hint.at("message");
  }
  CAPTURE(message);
  CHECK(message.starts_with("'unscale/"));
  CHECK(contains(message, "as do " + std::to_string(unscalings - 1) + " more ops"));
  CHECK(contains(message, "1.8e-12 at the loss scale 32768"));
  CHECK(contains(message, "precision.rewrite_rules: 2.19"));
  CHECK_FALSE(contains(folder.explain({"--rewrite", "auto", "--tensorflow", "2.20+"}), "W211"));
  CHECK(contains(folder.explain({"--tensorflow", "2.21"}, 2),
                 "precision.rewrite_rules: error: must be one of 2.19, 2.20+, got 2.21"));
  CHECK(contains(folder.explain({"--infer-follows"}, 2), "it is --tensorflow 2.20+ now"));
}

TEST_CASE("rewrite: a given graph that unscales in float16 is warned about") {
  const TemporaryDirectory directory;
  write_text(directory.file("g.txt"),
             "x = Placeholder\nhandle = Placeholder {dtype: resource}\n"
             "scale = ReadVariableOp(handle)\none = Const {value: 1.0}\n"
             "loss = L2Loss(x)\nscaled = Mul(loss, scale)\ngradient = MatMul(x, scaled)\n"
             "inverse = RealDiv(one, scale)\nunscaled = Mul(gradient, inverse)\n"
             "apply = Sin(unscaled)\n");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"explain", "--graph", "g.txt"};
    words.insert(words.end(), more.begin(), more.end());
    return halfstep(words, directory.path());
  };
  const Finished newer = run({"--tensorflow", "2.20+"});
  CAPTURE(newer.err);
  CHECK(newer.exit_code == 0);
  CHECK(contains(newer.err, "W211 g.txt:9:"));
  CHECK(contains(newer.err, "'unscaled' (Mul) takes the loss scale off in float16"));
  CHECK(run({"--set", "precision.rewrite_rules=2.20+"}).err == newer.err);
  CHECK(run({}).err.empty());
  CHECK(run({"--tensorflow", "2.20+", "--strict"}).exit_code == 2);
  CHECK(contains(run({"--tensorflow", "3"}).err, "must be one of 2.19, 2.20+, got 3"));
  CHECK(contains(run({"--infer-follows"}).err, "it is --tensorflow 2.20+ now"));
}

TEST_CASE("rewrite: a given graph that cannot be rewritten is printed as it is, and ends with 2") {
  const TemporaryDirectory directory;
  write_text(directory.file("g.txt"), "x = Const\na = MatMul(x, x)\nb = Nope(a)\n");
  for (const char* format : {"table", "json", "dot"}) {
    CAPTURE(format);
    const Finished end =
        halfstep({"explain", "--graph", "g.txt", "--format", format}, directory.path());
    CHECK(end.exit_code == 2);
    CHECK(contains(end.err, "g.txt: the rewrite failed"));
    CHECK(contains(end.err, "Op type not registered 'Nope' in node b"));
    CHECK(contains(end.out, "Nope"));
  }
}

TEST_CASE("rewrite: TensorFlow's variables are heeded in training, and wrong ones only warned of") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> words{
      "--rewrite", "auto", "--set", "precision.target=bfloat16", "--max-steps", "3"};
  CHECK(train(directory, "plain", words).exit_code == 0);
  const std::string prefix = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_";
  const std::vector<std::pair<std::string, std::string>> variables{
      {prefix + "ALLOWLIST_REMOVE", "MatMul"}, {prefix + "LEVEL", "whatever"}};
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  const Finished end = train(directory, "edited", words);
  for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
  CHECK(end.exit_code == 0);
  CHECK(contains(end.err, "unknown level 'whatever'"));

  const Json plain = report_of(directory, "plain").at("precision");
  const Json edited = report_of(directory, "edited").at("precision");
  CHECK(plain.at("effective") == "rewrite");
  CHECK(plain.at("rewrite").at("nodes_converted") > 0);
  CHECK(edited.at("rewrite").at("nodes_converted") == 0);
  CHECK(edited.at("effective") == "float32");
  CHECK(edited.at("rewrite").at("list_edits") == Json{"allow -MatMul"});
}

}  // namespace halfstep::test
