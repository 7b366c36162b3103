#include "backend/cuda/vendor/real/rank_sums.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "backend/cuda/vendor/real/check.h"

namespace halfstep::backend::cuda {
namespace real {
namespace {

/// The first version whose sums can be captured and have bfloat16.
constexpr int k_lowest_version = 21000;

/// The functions of NCCL; null where the library is not found.
struct Nccl {
  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(RankId*) = nullptr;
  int (*comm_init_rank)(void**, int, RankId, int) = nullptr;
  int (*comm_destroy)(void*) = nullptr;
  int (*comm_abort)(void*) = nullptr;
  int (*comm_get_async_error)(void*, int*) = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, void*, cudaStream_t) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, void*, cudaStream_t) = nullptr;
  const char* (*get_error_string)(int) = nullptr;
  int version = 0;
  std::string problem;  ///< why it cannot be used, or ""
};

Nccl load() {
  Nccl nccl;
  // Stays loaded: its threads end with the process.
  void* library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    nccl.problem = fmt::format(
        "NCCL cannot be loaded ({}); add the folder of libnccl.so.2 to "
        "LD_LIBRARY_PATH",
        ::dlerror());
    return nccl;
  }
  const auto get = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(library, name));
    if (function == nullptr) nccl.problem = fmt::format("libnccl.so.2 has no {}", name);
  };
  get(nccl.get_version, "ncclGetVersion");
  get(nccl.get_unique_id, "ncclGetUniqueId");
  get(nccl.comm_init_rank, "ncclCommInitRank");
  get(nccl.comm_destroy, "ncclCommDestroy");
  get(nccl.comm_abort, "ncclCommAbort");
  get(nccl.comm_get_async_error, "ncclCommGetAsyncError");
  get(nccl.all_reduce, "ncclAllReduce");
  get(nccl.reduce_scatter, "ncclReduceScatter");
  get(nccl.all_gather, "ncclAllGather");
  get(nccl.get_error_string, "ncclGetErrorString");
  if (nccl.get_version != nullptr) nccl.get_version(&nccl.version);
  if (nccl.problem.empty() && nccl.version < k_lowest_version) {
    nccl.problem = "NCCL is older than 2.10; install a newer one";
  }
  return nccl;
}

const Nccl& loaded() {
  static const Nccl k_nccl = load();
  return k_nccl;
}

const Nccl& usable() {
  const Nccl& nccl = loaded();
  if (!nccl.problem.empty()) throw VendorError(Failure::unavailable, nccl.problem);
  return nccl;
}

void check_nccl(int status, std::string_view call) {
  if (status == k_nccl_success || status == k_nccl_in_progress) return;
  throw VendorError(Failure::ranks, fmt::format("{}: {}", call, usable().get_error_string(status)));
}

int type_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return k_nccl_float16;
    case DType::bfloat16:
      return k_nccl_bfloat16;
    default:
      return k_nccl_float32;
  }
}

}  // namespace

RankSums::RankSums(cudaStream_t stream, const RankId& id, int rank, int ranks)
    : rank_(static_cast<std::size_t>(rank)),
      ranks_(static_cast<std::size_t>(ranks)),
      stream_(stream) {
  const Nccl& nccl = usable();
  try {
    check(cudaStreamCreateWithFlags(&sums_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    check_nccl(nccl.comm_init_rank(&communicator_, ranks, id, rank), "ncclCommInitRank");
  } catch (...) {
    close();
    throw;
  }
}

RankSums::~RankSums() { close(); }

void RankSums::close() noexcept {
  if (communicator_ != nullptr) loaded().comm_destroy(communicator_);
  for (const auto& [numbers, event] : summed_) cudaEventDestroy(event);
  if (ready_ != nullptr) cudaEventDestroy(ready_);
  if (sums_ != nullptr) cudaStreamDestroy(sums_);
}

void RankSums::start(void* numbers, std::int64_t count, DType dtype, comm::CollectiveKind kind) {
  cudaEvent_t& summed = summed_[numbers];
  if (summed == nullptr) {
    check(cudaEventCreateWithFlags(&summed, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  // Within a capture the events become the edges of the graph that fork and join the streams.
  check(cudaEventRecord(ready_, stream_), "cudaEventRecord");
  check(cudaStreamWaitEvent(sums_, ready_, 0), "cudaStreamWaitEvent");
  const auto elements = static_cast<std::size_t>(count);
  const int type = type_of(dtype);
  // In place: this rank's part is a piece of the buffer.
  const std::size_t part = elements / ranks_;
  std::byte* own = static_cast<std::byte*>(numbers) + rank_ * part * size_bytes(dtype);
  const Nccl& nccl = usable();
  switch (kind) {
    case comm::CollectiveKind::all_reduce:
      check_nccl(
          nccl.all_reduce(numbers, numbers, elements, type, k_nccl_sum, communicator_, sums_),
          "ncclAllReduce");
      break;
    case comm::CollectiveKind::reduce_scatter:
      check_nccl(nccl.reduce_scatter(numbers, own, part, type, k_nccl_sum, communicator_, sums_),
                 "ncclReduceScatter");
      break;
    case comm::CollectiveKind::all_gather:
      check_nccl(nccl.all_gather(own, numbers, part, type, communicator_, sums_), "ncclAllGather");
      break;
  }
  check(cudaEventRecord(summed, sums_), "cudaEventRecord");
}

void RankSums::wait(const void* numbers) {
  check(cudaStreamWaitEvent(stream_, summed_.at(numbers), 0), "cudaStreamWaitEvent");
}

void RankSums::expect_no_error() const {
  if (communicator_ == nullptr) return;
  int status = k_nccl_success;
  check_nccl(usable().comm_get_async_error(communicator_, &status), "ncclCommGetAsyncError");
  check_nccl(status, "ncclAllReduce");
}

void RankSums::abandon() noexcept {
  if (communicator_ != nullptr) loaded().comm_abort(communicator_);
  communicator_ = nullptr;
}

std::string nccl_version() {
  const int number = loaded().version;
  return number == 0 ? "" : library_version(static_cast<std::size_t>(number));
}

}  // namespace real

RankId new_rank_id() {
  RankId id{};
  real::check_nccl(real::usable().get_unique_id(&id), "ncclGetUniqueId");
  return id;
}

}  // namespace halfstep::backend::cuda
