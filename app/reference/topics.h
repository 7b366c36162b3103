#pragma once
// Construction of the topics.

#include <functional>
#include <vector>

#include "reference/entry.h"

namespace halfstep::app {

/// Replaces the type of registry fields by the registry's name and values. The fields below a
/// regularizer are left out, because it has an entry of its own.
std::vector<config::FieldDoc> shown(std::vector<config::FieldDoc> fields);

/// The same for the fields that `visit` declares.
std::vector<config::FieldDoc> fields_of(const std::function<void(config::Fields&)>& visit);

/// The guide to using your own data, in Markdown.
std::string data_guide();

Topic data_topic();
Topic config_topic();
Topic warnings_topic();

}  // namespace halfstep::app
