#include "report/schema_blocks.h"
#include "report/schema_kinds.h"

namespace halfstep::report::schema {
namespace {

/// One dtype, or the dtypes of a list attribute.
Json dtype_or_list() {
  Json schema = array(text(""), "dtype, or dtypes of a list");
  schema["type"] = Json::array({"string", "array"});
  return schema;
}

Json node() {
  return object({{"name", text("")},
                 {"op", text("as it stands after the rewrite")},
                 {"attrs", open_object({}, dtype_or_list(), "every type attribute")}},
                "one node of the input");
}

Json cast() {
  return object({{"name", text("of the new node")},
                 {"from", text("dtype")},
                 {"to", text("dtype")},
                 {"input", text("node:port")},
                 {"consumers", array(text(""), "nodes that read it, in graph order")}},
                "one inserted cast");
}

Json painted() {
  return object({{"node", text("")},
                 {"attr", text("type attribute")},
                 {"paint", word({"allow", "deny", "none"}, "")},
                 {"step",
                  word({"preserved",
                        "unprocessed",
                        "allow_seed",
                        "forced",
                        "deny_spread",
                        "list_cluster",
                        "between_allows",
                        "infer_after_allow",
                        "clear_spread",
                        "unpainted",
                        "loop",
                        "existing_cast",
                        "none"},
                       "of the rewrite that decided")},
                 {"reason", text("in words")}},
                "one type attribute of one node");
}

Json two(Doc doc) {
  Json schema = array(text(""), doc);
  schema["minItems"] = 2;
  schema["maxItems"] = 2;
  return schema;
}

Json difference(std::vector<Member> more) {
  std::vector<Member> members{{"path", text("")},
                              {"a", anything("in the first; (absent) where it has none")},
                              {"b", anything("in the second; (absent) where it has none")}};
  members.insert(members.end(), more.begin(), more.end());
  return object(std::move(members), "one member");
}

}  // namespace

Json graph_rewrite() {
  return object(
      {{"schema_version", version()},
       {"kind", constant("graph_rewrite", "")},
       {"mode", word({"cuda", "bf16", "cpu", "fp16_cpu"}, "of the rewrite")},
       {"status", word({"ok", "nothing_to_do", "failed"}, "how it ended")},
       {"message", nullable(text("why nothing was done"))},
       {"nodes", array(node(), "every node of the input, in its order")},
       {"casts", array(cast(), "inserted")},
       {"converted_attrs", integer("type attributes changed")},
       {"casts_counted", integer("casts to 16 bits, those of constants and variables left out")},
       {"paint", array(painted(), "every type attribute looked at")}},
      "the rewrite of a written graph");
}

Json explain_diff() {
  return object({{"schema_version", version()},
                 {"kind", constant("explain_diff", "")},
                 {"policies", two("names of the two sides")},
                 {"ops",
                  array(object({{"name", text("node of the step graph")},
                                {"type", text("op")},
                                {"compute_dtype", two("on each side")},
                                {"out_dtype", two("on each side")},
                                {"kernel", two("on each side")},
                                {"reason", two("on each side")}},
                               "one op"),
                        "whose dtypes differ")}},
                "ops that two policies treat differently");
}

Json diff() {
  return object({{"schema_version", version()},
                 {"kind", constant("diff", "")},
                 {"config", array(difference({}), "settings")},
                 {"precision", array(difference({}), "what became of the precision")},
                 {"outcome", array(difference({}), "end, steps, hashes, machine")},
                 {"metrics", array(difference({{"delta", measure("b - a")}}), "last values")},
                 {"step_time",
                  object({{"unit", constant("ms", "of the times")},
                          {"a", measure("median, ms")},
                          {"b", measure("median, ms")},
                          {"ratio", measure("a / b; above 1 when b is faster")}},
                         "medians")}},
                "in what two training runs differ");
}

Json explain() {
  Json op = ops();
  op["description"] = "every op that the precision passes decided about, in order";
  const std::vector<Member> more{
      {"fused_into", nullable(text("op whose launch computes this one too"))},
      {"list", nullable(text("of the rewrite that names the op"))},
      {"step", text("of the rewrite that decided; policy without one")},
      {"cause", nullable(text("op that decided or stands in the way"))},
      {"bytes", number("of its floating outputs")},
      {"cast_bytes", number("read and written, when it casts between floating dtypes")},
      {"predicted",
       array(object({{"kernel", text("that could run it")},
                     {"seconds", number("of one thread for 512 samples")}},
                    "one prediction"),
             "by the cost model of the CPU, the fastest first; empty for other ops and devices")}};
  for (const Member& member : more) {
    op["items"]["properties"][std::string(member.name)] = member.schema;
    op["items"]["required"].push_back(member.name);
  }
  op["items"]["properties"]["kernel"] = nullable(text("null on pretended hardware"));
  return object({{"schema_version", version()},
                 {"kind", constant("explain", "")},
                 {"policy", text("or the rewrite and its target")},
                 {"device", text("backend that would compute")},
                 {"arch", text("instruction set or GPU, maybe pretended")},
                 {"batch_size", integer("samples per step", 1)},
                 {"ops", std::move(op)},
                 {"rewrite", rewrite()},
                 {"flops_per_step", number("of products and convolutions")},
                 {"casts_executed", integer("casts between floating dtypes in a step")},
                 {"cast_bytes", number("bytes read and written by them in a step")},
                 {"half_flops_share", fraction("of products and convolutions")},
                 {"half_bytes_share", fraction("of all outputs")},
                 {"hints",
                  array(object({{"code", text("W and three digits")},
                                {"where", text("layer or place in the config; empty without one")},
                                {"message", text("in words")}},
                               "one hint"),
                        "what could be changed")}},
                "which dtype each op gets, and why");
}

}  // namespace halfstep::report::schema
