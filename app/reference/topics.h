#pragma once
// The topics one by one.

#include <functional>
#include <vector>

#include "reference/entry.h"

namespace halfstep::app {

/// Gives fields of registry types the name and the words of their registry. The fields below a
/// regularizer are left out: it has an entry of its own.
std::vector<config::FieldDoc> shown(std::vector<config::FieldDoc> fields);

/// The same of what `visit` declares.
std::vector<config::FieldDoc> fields_of(const std::function<void(config::Fields&)>& visit);

/// How to bring data of one's own, in Markdown.
std::string data_guide();

Topic data_topic();
Topic config_topic();

}  // namespace halfstep::app
