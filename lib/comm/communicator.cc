#include "comm/communicator.h"

#include <utility>

#include "core/dispatch.h"

namespace halfstep::comm {

RankLost::RankLost(std::vector<int> ranks, const std::string& message, const std::string& hint)
    : UserError(ErrorKind::ranks, {}, message, hint), ranks_(std::move(ranks)) {}

std::int64_t padded_count(std::int64_t count, int ranks) {
  return (count + ranks - 1) / ranks * ranks;
}

void add_parts(const std::byte* parts, int ranks, std::int64_t count, DType dtype, std::byte* to) {
  dispatch_floating(dtype, [&]<class T>(Type<T>) {
    const auto* in = reinterpret_cast<const T*>(parts);
    auto* out = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < count; ++i) {
      auto total = static_cast<Compute<T>>(in[i]);
      for (int r = 1; r < ranks; ++r) total += static_cast<Compute<T>>(in[r * count + i]);
      out[i] = static_cast<T>(total);
    }
  });
}

void add_over_ranks(Communicator& ranks, std::vector<double>& numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  numbers.resize(static_cast<std::size_t>(padded_count(count, ranks.size())));
  const std::unique_ptr<Sum> sum = ranks.sum(count, DType::float64);
  auto* bytes = reinterpret_cast<std::byte*>(numbers.data());
  sum->start(bytes);
  ranks.wait(bytes);
  numbers.resize(static_cast<std::size_t>(count));
}

}  // namespace halfstep::comm
