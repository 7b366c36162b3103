#include "report/schema_blocks.h"
#include "report/schema_kinds.h"

namespace halfstep::report::schema {
namespace {

Json argument() {
  return object({{"name", text("last part of the path")},
                 {"path", text("below its entry")},
                 {"doc", text("what it does")},
                 {"type", text("in words, with the values that are allowed")},
                 {"unit", nullable(text("of its values; null: none"))},
                 {"required", boolean("whether it must be given")},
                 {"nullable", boolean("whether null is a value")},
                 {"default", nullable(text("as YAML; null: none, or not the same everywhere"))},
                 {"values", array(text(""), "all of them, where there are few")},
                 {"minimum", nullable(number("inclusive"))},
                 {"maximum", nullable(number("inclusive"))},
                 {"above", nullable(number("exclusive minimum"))},
                 {"below", nullable(number("exclusive maximum"))}},
                "one argument, or key of a config");
}

Json fact() {
  return object({{"label", text("shapes, dtypes, example, ...")}, {"text", text("of the fact")}},
                "one fact");
}

Json entry() {
  return object({{"kind", text("layer, loss, section, ...; topic in the list of topics")},
                 {"name", text("by which configs and halfstep help know it")},
                 {"doc", text("what it computes or means")},
                 {"facts", array(fact(), "shapes, dtypes, example and the like")},
                 {"arguments", array(argument(), "its own")},
                 {"common_arguments", array(argument(), "of every entry of its kind")}},
                "one entry");
}

}  // namespace

Json reference() {
  return object({{"schema_version", version()},
                 {"kind", constant("reference", "")},
                 {"topic", nullable(text("as asked for; null: the list of topics"))},
                 {"text", nullable(text("an introduction in Markdown; null: none"))},
                 {"entries", array(entry(), "in order")}},
                "entries of the reference");
}

}  // namespace halfstep::report::schema
