// Blocks of a model: their expansion, and the errors in them.

#include "config/blocks.h"

#include <doctest/doctest.h>

#include "config/printer.h"
#include "support.h"

namespace halfstep::config::testing {
namespace {

/// A config with this model, given as the lines below `model:`.
std::string with_model(std::string_view model) {
  return "data: {name: mnist}\nmodel:\n" + std::string(model) +
         "loss: mean_squared_error\noptimizer: sgd\n";
}

constexpr std::string_view k_residual =
    "  inputs: {x: [8]}\n"
    "  blocks:\n"
    "    residual:\n"
    "      parameters: {units: null, activation: relu}\n"
    "      nodes:\n"
    "        hidden: {type: dense, units: $units, activation: $activation, from: input}\n"
    "        sum: {type: add, from: [input, hidden]}\n";

/// The nodes of a config as `name: type < from, from` with further fields in brackets, in order.
std::vector<std::string> nodes_of(std::string_view model) {
  std::vector<std::string> all;
  for (const Node::Entry& entry : spec_of(node_of(with_model(model))).model.nodes.entries) {
    std::string line = entry.key + ":";
    for (const Node::Entry& field : entry.value.entries) {
      line += " " + field.key + "=" + field.value.text;
      for (const Node& item : field.value.items) line += item.text + ",";
    }
    all.push_back(line);
  }
  return all;
}

std::vector<std::string> problems_of(std::string_view model) {
  Diagnostics diagnostics;
  const Node node = load_text(with_model(model), "c.yaml", diagnostics);
  parse_run_spec(node, diagnostics);
  return problems(diagnostics);
}

}  // namespace

TEST_CASE("blocks: a block is repeated, each time on the output of the time before") {
  const std::string model = std::string(k_residual) +
                            "  nodes:\n"
                            "    body: {block: residual, count: 2, units: 8, from: x}\n"
                            "    last: {block: residual, units: 8, activation: tanh, from: body}\n"
                            "    end: {type: dense, units: 1, from: last}\n"
                            "  outputs: [end]\n";
  CHECK(nodes_of(model) == std::vector<std::string>{
                               "body.1.hidden: type=dense units=8 activation=relu from=x",
                               "body.1.sum: type=add from=x,body.1.hidden,",
                               "body.2.hidden: type=dense units=8 activation=relu from=body.1.sum",
                               "body.2.sum: type=add from=body.1.sum,body.2.hidden,",
                               "last.hidden: type=dense units=8 activation=tanh from=body.2.sum",
                               "last.sum: type=add from=body.2.sum,last.hidden,",
                               "end: type=dense units=1 from=last.sum"});
  // The printed config has the nodes, and reads as the same.
  const RunSpec spec = spec_of(node_of(with_model(model)));
  const std::string printed = print(spec);
  CHECK(printed.find("blocks") == std::string::npos);
  CHECK(print(spec_of(node_of(printed))) == printed);
  CHECK(config_hash(spec_of(node_of(printed))) == config_hash(spec));
}

TEST_CASE("blocks: outputs by number and initial states follow the names of a block") {
  const std::string_view model =
      "  inputs: {x: [4, 2]}\n"
      "  blocks:\n"
      "    coder:\n"
      "      inputs: [sequence, h]\n"
      "      nodes:\n"
      "        dense: {type: dense, from: sequence}\n"
      "        rnn: {type: gru, from: dense, initial_state: h}\n"
      "        last: {type: lstm, from: dense, initial_state: [rnn:1, h]}\n"
      "  nodes:\n"
      "    encoder: {type: gru, from: x}\n"
      "    decoder: {block: coder, from: [x, encoder:1]}\n"
      "    end: {type: dense, from: decoder:2}\n"
      "  outputs: [end, decoder:1]\n";
  CHECK(nodes_of(model) ==
        std::vector<std::string>{"encoder: type=gru from=x",
                                 "decoder.dense: type=dense from=x",
                                 "decoder.rnn: type=gru from=decoder.dense initial_state=encoder:1",
                                 "decoder.last: type=lstm from=decoder.dense "
                                 "initial_state=decoder.rnn:1,encoder:1,",
                                 "end: type=dense from=decoder.last:2"});
}

TEST_CASE("blocks: several inputs, an output by name, a block in a block, an output of the model") {
  const std::string_view model =
      "  inputs: {a: [4], b: [4]}\n"
      "  blocks:\n"
      "    join:\n"
      "      inputs: [left, right]\n"
      "      output: sum\n"
      "      nodes:\n"
      "        sum: {type: add, from: [left, right]}\n"
      "        unused: {type: linear, from: sum}\n"
      "    twice:\n"
      "      parameters: {width: 4}\n"
      "      nodes:\n"
      "        own: {type: dense, units: $width, from: input}\n"
      "        both: {block: join, from: [input, own]}\n"
      "  nodes:\n"
      "    first: {block: join, from: [a, b]}\n"
      "    second: {block: twice, count: 2, width: 4, from: first}\n"
      "  outputs: [second]\n";
  CHECK(nodes_of(model) ==
        std::vector<std::string>{"first.sum: type=add from=a,b,",
                                 "first.unused: type=linear from=first.sum",
                                 "second.1.own: type=dense units=4 from=first.sum",
                                 "second.1.both.sum: type=add from=first.sum,second.1.own,",
                                 "second.1.both.unused: type=linear from=second.1.both.sum",
                                 "second.2.own: type=dense units=4 from=second.1.both.sum",
                                 "second.2.both.sum: type=add from=second.1.both.sum,second.2.own,",
                                 "second.2.both.unused: type=linear from=second.2.both.sum"});
  CHECK(spec_of(node_of(with_model(model))).model.outputs ==
        std::vector<std::string>{"second.2.both.sum"});
}

TEST_CASE("blocks: an error is reported at its line, once") {
  const std::string nodes = "  nodes: {y: {block: residual, units: 8, from: x}}\n  outputs: [y]\n";
  CHECK(problems_of(std::string(k_residual) + nodes).empty());
  const auto one = [&](std::string_view from, std::string_view to) {
    std::string model = std::string(k_residual) + nodes;
    const std::size_t at = model.find(from);
    REQUIRE(at != std::string::npos);
    model.replace(at, from.size(), to);
    const std::vector<std::string> found = problems_of(model);
    CAPTURE(model);
    for (const std::string& line : found) CAPTURE(line);
    REQUIRE(!found.empty());
    CHECK(found.size() == 1);
    return found.front();
  };
  const auto holds = [](const std::string& text, std::string_view part) {
    CAPTURE(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(holds(one("block: residual", "block: residul"),
              "c.yaml:10:22: model.nodes.y.block: error: unknown block 'residul' (did you mean "
              "'residual'?"));
  CHECK(holds(one("block: residual, units: 8", "block: residual"),
              "block 'residual' needs the parameter 'units'"));
  CHECK(holds(one("units: 8", "units: 8, unit: 9"), "block 'residual' has no parameter 'unit'"));
  CHECK(holds(one("$activation", "$activaton"), "the block has no parameter 'activaton'"));
  CHECK(holds(one("from: [input, hidden]", "from: [input, hiden]"),
              "'hiden' is neither an input nor a node of the block"));
  CHECK(holds(one("units: 8, from: x", "units: 8, from: [x, x]"), "takes input in `from`, got 2"));
  CHECK(holds(one("units: 8", "units: 8, count: 0"), "must be a whole number from 1 to 1000"));
  CHECK(holds(one("{type: add, from: [input, hidden]}", "{block: residual, units: 8, from: input}"),
              "block 'residual' uses itself: residual -> residual"));
  CHECK(holds(one("      parameters", "      parameter"), "unknown key 'parameter' of a block"));
  CHECK(holds(one("hidden: {", "input: {"), "has a node with the name 'input' of an input"));
  CHECK(holds(one("{block: residual, units: 8, from: x}", "{type: linear, from: x}"),
              "block 'residual' is used by no node"));
}

TEST_CASE("blocks: nested counts give no more nodes than can be read") {
  std::string model =
      "  inputs: {x: [8]}\n  blocks:\n    a0: {nodes: {y: {type: linear, from: input}}}\n";
  for (int i = 1; i < 6; ++i) {
    model += "    a" + std::to_string(i) + ": {nodes: {y: {block: a" + std::to_string(i - 1) +
             ", count: 1000, from: input}}}\n";
  }
  model += "  nodes: {y: {block: a5, count: 1000, from: x}}\n  outputs: [y]\n";
  const std::vector<std::string> found = problems_of(model);
  REQUIRE(!found.empty());
  CHECK(found.front().find("more than 20000 nodes") != std::string::npos);
}

}  // namespace halfstep::config::testing
