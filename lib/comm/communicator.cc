#include "comm/communicator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/dispatch.h"
#include "core/error.h"

namespace halfstep::comm {

namespace {

class SimulatedRanks final : public Communicator {
 public:
  explicit SimulatedRanks(int ranks) : ranks_(ranks) {}

  int rank() const override { return 0; }
  int size() const override { return ranks_; }
  const Transport& transport() const override { return transport_; }
  Traffic traffic() const override { return {}; }
  void set_timeout(double) override {}
  std::unique_ptr<Collective> collective(std::int64_t, DType, CollectiveKind) override {
    return std::make_unique<NoCollective>();
  }
  void wait(const std::byte*) override { refuse(); }
  void wait_for(const std::function<bool()>&) override { refuse(); }
  std::vector<std::string> gather(std::string_view) override { refuse(); }
  void shift(const std::byte*, std::byte*, std::size_t) override { refuse(); }
  void close() override {}

 private:
  struct NoCollective final : Collective {
    void start(std::byte*) override { refuse(); }
  };
  [[noreturn]] static void refuse() {
    throw InternalError("the ranks are simulated", std::source_location::current());
  }

  int ranks_;
  Transport transport_;
};

}  // namespace

std::shared_ptr<Communicator> simulated_ranks(int ranks) {
  return std::make_shared<SimulatedRanks>(ranks);
}

RankLost::RankLost(std::vector<int> ranks, const std::string& message, const std::string& hint)
    : UserError(ErrorKind::ranks, {}, message, hint), ranks_(std::move(ranks)) {}

bool RankLost::has(int rank) const { return std::ranges::find(ranks_, rank) != ranks_.end(); }

int RankLost::lowest_left() const {
  int rank = 0;
  while (has(rank)) ++rank;
  return rank;
}

std::int64_t padded_count(std::int64_t count, int ranks) {
  return (count + ranks - 1) / ranks * ranks;
}

bool is_single_message(CollectiveKind kind, std::int64_t bytes, int ranks) {
  // Above these limits, sending each byte to all ranks costs more than the saved latency.
  return kind == CollectiveKind::all_reduce && bytes * ranks <= 64 << 10 && ranks <= 8;
}

std::int64_t sent_bytes(CollectiveKind kind, std::int64_t bytes, int ranks) {
  if (is_single_message(kind, bytes, ranks)) return (ranks - 1) * bytes;
  return (kind == CollectiveKind::all_reduce ? 2 : 1) * (ranks - 1) * (bytes / ranks);
}

void reduce_sum(std::span<const std::byte* const> inputs,
                std::int64_t count,
                DType dtype,
                std::byte* to) {
  dispatch_floating(dtype, [&]<class T>(Type<T>) {
    auto* out = reinterpret_cast<T*>(to);
    // Accumulators of a block stay in the L1 cache, so that the loops over elements vectorize.
    constexpr std::int64_t k_block = 1024;
    std::array<Compute<T>, k_block> totals;
    for (std::int64_t begin = 0; begin < count; begin += k_block) {
      const std::int64_t n = std::min(k_block, count - begin);
      for (std::size_t r = 0; r < inputs.size(); ++r) {
        const T* input = reinterpret_cast<const T*>(inputs[r]) + begin;
        for (std::int64_t i = 0; i < n; ++i) {
          const auto x = static_cast<Compute<T>>(input[i]);
          totals[static_cast<std::size_t>(i)] =
              r == 0 ? x : totals[static_cast<std::size_t>(i)] + x;
        }
      }
      for (std::int64_t i = 0; i < n; ++i) {
        out[begin + i] = static_cast<T>(totals[static_cast<std::size_t>(i)]);
      }
    }
  });
}

void Communicator::start_exact(const std::byte* numbers,
                               std::int64_t count,
                               const std::function<void(float*)>& fill) {
  if (!measures_errors_) return;
  ExactSum& exact = exact_[numbers];
  // The smaller last batch of an epoch may have a buffer of another size at this address.
  if (std::ssize(exact.numbers) != count)
    exact.sum = collective(count, DType::float32, CollectiveKind::all_reduce);
  exact.numbers.assign(static_cast<std::size_t>(count), 0);
  fill(exact.numbers.data());
  exact.sum->start(reinterpret_cast<std::byte*>(exact.numbers.data()));
  exact.started = true;
}

void Communicator::compare_exact(const std::byte* numbers,
                                 std::int64_t begin,
                                 std::int64_t count,
                                 DType dtype) {
  const auto found = exact_.find(numbers);
  if (found == exact_.end() || !found->second.started) return;
  ExactSum& exact = found->second;
  exact.started = false;
  wait(reinterpret_cast<const std::byte*>(exact.numbers.data()));
  dispatch_floating(dtype, [&]<class T>(Type<T>) {
    const auto* rounded = reinterpret_cast<const T*>(numbers);
    for (std::int64_t i = begin; i < begin + count; ++i) {
      const double sum = exact.numbers[static_cast<std::size_t>(i)];
      const double error = static_cast<double>(static_cast<float>(rounded[i])) - sum;
      if (!std::isfinite(error)) continue;
      error_.squared_errors += error * error;
      error_.squared_sums += sum * sum;
    }
  });
}

void all_reduce_sum(Communicator& ranks, std::vector<double>& numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  numbers.resize(static_cast<std::size_t>(padded_count(count, ranks.size())));
  const std::unique_ptr<Collective> sum =
      ranks.collective(count, DType::float64, CollectiveKind::all_reduce);
  auto* bytes = reinterpret_cast<std::byte*>(numbers.data());
  sum->start(bytes);
  ranks.wait(bytes);
  numbers.resize(static_cast<std::size_t>(count));
}

}  // namespace halfstep::comm
