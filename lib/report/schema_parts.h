#pragma once
// What a JSON Schema (draft-07) is composed of. Every part has a description; numbers name their
// unit in it.

#include <initializer_list>
#include <string_view>
#include <vector>

#include "report/json.h"

namespace halfstep::report::schema {

using Doc = std::string_view;

Json text(Doc doc);
Json boolean(Doc doc);
/// An integer of at least `minimum`.
Json integer(Doc doc, std::int64_t minimum = 0);
Json number(Doc doc);
/// A number that is null where it is not finite or was not measured.
Json measure(Doc doc);
/// A number from 0 to 1.
Json fraction(Doc doc);
/// The two ends of an interval, or null.
Json interval(Doc doc);
/// Exactly this value.
Json constant(Json value, Doc doc);
/// One of some words.
Json word(std::initializer_list<std::string_view> words, Doc doc);
/// Anything.
Json anything(Doc doc);

/// The same or null.
Json nullable(Json schema);

Json array(Json items, Doc doc);

/// A member of an object; `required` ones are always there.
struct Member {
  std::string_view name;
  Json schema;
  bool required = true;
};

/// An object of these members and no others.
Json object(std::vector<Member> members, Doc doc);
/// An object whose other members follow `others`.
Json open_object(std::vector<Member> members, Json others, Doc doc);

}  // namespace halfstep::report::schema
