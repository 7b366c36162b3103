#include "train/ranks.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/json_fields.h"
#include "graph/ops/ops.h"
#include "train/step_time.h"

namespace halfstep::train {
namespace {

constexpr double k_seconds_between = 0.1;
constexpr double k_max_calls_between = 1000;

/// From the weakest to the strongest.
constexpr std::array k_requests{
    Request::checkpoint, Request::interrupt, Request::time_limit, Request::preempt};

class RankRequests {
 public:
  RankRequests(std::function<Request()> own, comm::Communicator& ranks)
      : own_(std::move(own)), ranks_(ranks) {}

  Request operator()() {
    if (own_) pending_ = std::max(pending_, own_());
    ++calls_;
    if (calls_left_-- > 0) return Request::none;
    std::vector<double> numbers{seconds_since(last_) / static_cast<double>(calls_)};
    for (const Request request : k_requests) numbers.push_back(pending_ == request ? 1 : 0);
    comm::all_reduce_sum(ranks_, numbers);
    const double seconds_per_call = numbers[0] / ranks_.size();
    calls_left_ = static_cast<std::int64_t>(
        std::clamp(k_seconds_between / std::max(seconds_per_call, 1e-9), 0.0, k_max_calls_between));
    calls_ = 0;
    last_ = std::chrono::steady_clock::now();
    pending_ = Request::none;
    Request agreed = Request::none;
    for (std::size_t i = 0; i < k_requests.size(); ++i) {
      if (numbers[i + 1] > 0) agreed = k_requests[i];
    }
    return agreed;
  }

 private:
  std::function<Request()> own_;
  comm::Communicator& ranks_;
  Request pending_ = Request::none;
  std::int64_t calls_ = 0, calls_left_ = 0;  ///< since the last exchange, until the next
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

std::function<Request()> agreed_requests(std::function<Request()> own, comm::Communicator& ranks) {
  return RankRequests(std::move(own), ranks);
}

double sent_bytes(const graph::Node& node, bool rings) {
  const int halves = graph::ops::collective_phases(node);
  if (halves == 0) return 0;
  const auto ranks = node.attrs.get<std::int64_t>("ranks");
  const graph::TensorType& sum = node.outputs[0];
  const std::int64_t bytes =
      sum.shape.elements() * static_cast<std::int64_t>(size_bytes(sum.dtype));
  if (rings || halves == 1) return static_cast<double>(halves * (ranks - 1) * bytes / ranks);
  return static_cast<double>(
      comm::sent_bytes(comm::CollectiveKind::all_reduce, bytes, static_cast<int>(ranks)));
}

std::optional<FirstNonfinite> first_of_ranks(const std::optional<FirstNonfinite>& own,
                                             comm::Communicator& ranks) {
  const JsonFormat format{.nonfinite_strings = true};
  for (const std::string& text : ranks.gather(own ? to_json(*own, format).dump() : "")) {
    if (text.empty()) continue;
    FirstNonfinite first;
    std::vector<Violation> violations;
    read_json(Json::parse(text), field_ref(first), violations, format);
    require(violations.empty(), "a rank sent {}", text);
    return first;
  }
  return std::nullopt;
}

}  // namespace halfstep::train
