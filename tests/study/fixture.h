#pragma once
// A run small enough to be done many times.

#include <string>

#include "backend/backend.h"
#include "data/dataset.h"
#include "study/policy_list.h"
#include "train/fixture.h"

namespace halfstep::study {

/// Two epochs of digits on a small dense network with dropout: 128 training rows in batches of 24,
/// which are five full batches and a tail per epoch.
config::RunSpec tiny_spec();
/// The same under a policy.
Variant tiny_variant(const std::string& word);
const data::Dataset& tiny_data();
using train::cpu;

}  // namespace halfstep::study
