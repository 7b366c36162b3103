// NVIDIA's devices: the CUDA runtime, cuBLASLt and cuDNN.

#include "backend/cuda/vendor/vendor.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend/cuda/vendor/real/device.h"
#include "backend/cuda/vendor/real/rank_sums.h"

namespace halfstep::backend::cuda {
namespace {

using real::check;

// CUDA 13 dropped Volta.
constexpr int k_lowest_capability = CUDART_VERSION >= 13000 ? 75 : 70;

constexpr const char* k_other_device = "use --device cpu";

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (const char byte : uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

GpuInfo facts_of(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return {.name = properties.name,
          .uuid = uuid_text(properties.uuid),
          .compute_capability = 10 * properties.major + properties.minor,
          .multiprocessors = properties.multiProcessorCount,
          .memory_bytes = properties.totalGlobalMem,
          .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize)};
}

std::string too_old(const GpuInfo& facts) {
  return fmt::format("{} has compute capability {}.{}, this build needs {}.{} or newer",
                     facts.name,
                     facts.compute_capability / 10,
                     facts.compute_capability % 10,
                     k_lowest_capability / 10,
                     k_lowest_capability % 10);
}

/// Fills in the versions and devices found; returns why no device can be used, if so.
std::optional<Unavailable> find_devices(DeviceProbe& probe) {
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  probe.runtime = real::cuda_version(runtime);
  if (driver == 0) {
    return Unavailable{"no NVIDIA driver was found (libcuda.so.1)",
                       "install the driver of the GPU"};
  }
  probe.driver = real::cuda_version(driver);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    return Unavailable{
        fmt::format(
            "the NVIDIA driver knows CUDA {}, this build needs {}", probe.driver, probe.runtime),
        "update the driver"};
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    return Unavailable{"the NVIDIA driver finds no GPU",
                       "if there is one, look at CUDA_VISIBLE_DEVICES"};
  }
  check(status, "cudaGetDeviceCount");
  for (int device = 0; device < count; ++device) probe.devices.push_back(facts_of(device));
  const bool usable =
      std::any_of(probe.devices.begin(), probe.devices.end(), [](const GpuInfo& facts) {
        return facts.compute_capability >= k_lowest_capability;
      });
  if (usable) return std::nullopt;
  return Unavailable{too_old(probe.devices.front()), k_other_device};
}

class RealEvent final : public StreamEvent {
 public:
  explicit RealEvent(cudaStream_t stream) : stream_(stream) {
    check(cudaEventCreate(&event_), "cudaEventCreate");
  }
  RealEvent(const RealEvent&) = delete;
  RealEvent& operator=(const RealEvent&) = delete;
  ~RealEvent() override { cudaEventDestroy(event_); }

  void record() override {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream_, &capture), "cudaStreamIsCapturing");
    // An external event becomes a node of the graph; others are only dependencies between streams.
    const bool captured = capture == cudaStreamCaptureStatusActive;
    check(cudaEventRecordWithFlags(
              event_, stream_, captured ? cudaEventRecordExternal : cudaEventRecordDefault),
          "cudaEventRecordWithFlags");
  }
  void wait() override { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  double seconds_since(const Event& begin) const override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, dynamic_cast<const RealEvent&>(begin).event_, event_),
          "cudaEventElapsedTime");
    return milliseconds / 1000.0;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t event_ = nullptr;
};

class RealGraph final : public CapturedGraph {
 public:
  RealGraph(cudaGraph_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {
    try {
      check(cudaGraphGetNodes(graph_, nullptr, &nodes_), "cudaGraphGetNodes");
      check(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
      check(cudaGraphUpload(executable_, stream_), "cudaGraphUpload");
    } catch (...) {
      destroy();
      throw;
    }
  }
  RealGraph(const RealGraph&) = delete;
  RealGraph& operator=(const RealGraph&) = delete;
  ~RealGraph() override { destroy(); }

  std::size_t nodes() const override { return nodes_; }
  void launch() override { check(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch"); }

 private:
  void destroy() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }

  cudaGraph_t graph_;
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
  std::size_t nodes_ = 0;
};

class RealVendor final : public Vendor {
 public:
  explicit RealVendor(const VendorOptions& options)
      : facts_(facts_of(options.device)),
        index_(options.device),
        limit_(options.memory_limit),
        device_{.autotune = options.autotune,
                .l2_bytes = facts_.l2_bytes,
                .choices = real::Choices(
                    options.cache_folder,
                    facts_.name,
                    fmt::format("cublas_{}_cudnn_{}", cublasLtGetVersion(), cudnnGetVersion()))} {
    try {
      check(cudaStreamCreateWithFlags(&device_.stream, cudaStreamNonBlocking),
            "cudaStreamCreateWithFlags");
      check(cublasLtCreate(&device_.cublas), "cublasLtCreate");
    } catch (...) {
      close();
      throw;
    }
  }
  RealVendor(const RealVendor&) = delete;
  RealVendor& operator=(const RealVendor&) = delete;
  ~RealVendor() override { close(); }

  void enter() override { check(cudaSetDevice(index_), "cudaSetDevice"); }
  const GpuInfo& device() const override { return facts_; }
  Stream stream() override { return device_.stream; }

  void* allocate(std::size_t bytes) override {
    if (bytes == 0 || (limit_ > 0 && used_ + bytes > limit_)) return nullptr;
    void* address = nullptr;
    const cudaError_t status = cudaMalloc(&address, bytes);
    if (status == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      return nullptr;
    }
    check(status, "cudaMalloc");
    blocks_.emplace(address, bytes);
    used_ += bytes;
    return address;
  }
  void release(void* device) override {
    if (device == nullptr) return;
    check(cudaFree(device), "cudaFree");
    const auto block = blocks_.find(device);
    if (block == blocks_.end()) return;
    used_ -= block->second;
    blocks_.erase(block);
  }
  Memory memory() const override {
    Memory memory;
    check(cudaMemGetInfo(&memory.free, &memory.total), "cudaMemGetInfo");
    if (limit_ == 0) return memory;
    return {.free = std::min(memory.free, limit_ - used_), .total = limit_};
  }
  void* allocate_host(std::size_t bytes) override {
    void* address = nullptr;
    if (bytes > 0) check(cudaMallocHost(&address, bytes), "cudaMallocHost");
    return address;
  }
  void release_host(void* host) override { check(cudaFreeHost(host), "cudaFreeHost"); }

  void upload(void* device, const void* host, std::size_t bytes) override {
    move(device, host, bytes, cudaMemcpyHostToDevice);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    move(host, device, bytes, cudaMemcpyDeviceToHost);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    move(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  void fill(void* device, std::uint8_t byte, std::size_t bytes) override {
    check(cudaMemsetAsync(device, byte, bytes, device_.stream), "cudaMemsetAsync");
  }

  void synchronize() override {
    check(cudaStreamSynchronize(device_.stream), "cudaStreamSynchronize");
  }
  bool idle() override {
    if (ranks_) ranks_->expect_no_error();
    const cudaError_t status = cudaStreamQuery(device_.stream);
    if (status == cudaErrorNotReady) return false;
    check(status, "cudaStreamQuery");
    return true;
  }
  std::unique_ptr<StreamEvent> event() override {
    return std::make_unique<RealEvent>(device_.stream);
  }
  void begin_capture() override {
    check(cudaStreamBeginCapture(device_.stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(device_.stream, &graph), "cudaStreamEndCapture");
    return std::make_unique<RealGraph>(graph, device_.stream);
  }

  void join(const RankId& id, int rank, int ranks) override {
    ranks_ = std::make_unique<real::RankSums>(device_.stream, id, rank, ranks);
  }
  void start_sum(void* numbers,
                 std::int64_t count,
                 DType dtype,
                 comm::CollectiveKind kind) override {
    ranks_->start(numbers, count, dtype, kind);
  }
  void wait_for_sum(const void* numbers) override { ranks_->wait(numbers); }
  void abandon_sums() override {
    if (ranks_) ranks_->abandon();
  }

  std::unique_ptr<Matmul> matmul(const MatmulKey& key) override {
    return real::prepare_matmul(device_, key);
  }
  std::unique_ptr<Convolution> convolution(const ConvKey& key) override {
    // Loading cuDNN takes a second, so it is loaded on first use: models without convolutions never
    // pay.
    if (device_.cudnn == nullptr) {
      check(cudnnCreate(&device_.cudnn), "cudnnCreate");
      check(cudnnSetStream(device_.cudnn, device_.stream), "cudnnSetStream");
    }
    return real::prepare_convolution(device_, key);
  }

 private:
  void move(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, bytes, kind, device_.stream), "cudaMemcpyAsync");
  }
  void close() {
    ranks_ = nullptr;
    for (const auto& [address, bytes] : blocks_) cudaFree(address);
    if (device_.cudnn != nullptr) cudnnDestroy(device_.cudnn);
    if (device_.cublas != nullptr) cublasLtDestroy(device_.cublas);
    if (device_.stream != nullptr) cudaStreamDestroy(device_.stream);
  }

  GpuInfo facts_;
  int index_;
  std::size_t limit_;
  real::Device device_;
  std::map<void*, std::size_t> blocks_;
  std::size_t used_ = 0;
  std::unique_ptr<real::RankSums> ranks_;
};

}  // namespace

const char* vendor_name() { return "cuda"; }

DeviceProbe probe() {
  DeviceProbe probe;
  probe.nccl = real::nccl_version();
  probe.cublas = real::library_version(cublasLtGetVersion());
  probe.cudnn = real::library_version(cudnnGetVersion());
  try {
    probe.unavailable = find_devices(probe);
  } catch (const VendorError& e) {
    probe.unavailable = Unavailable{e.what(), k_other_device};
  }
  return probe;
}

std::unique_ptr<Vendor> open_vendor(const VendorOptions& options) {
  const DeviceProbe found = probe();
  if (found.unavailable) throw VendorError(Failure::unavailable, found.unavailable->reason);
  if (options.device < 0 || options.device >= static_cast<int>(found.devices.size())) {
    throw VendorError(
        Failure::unavailable,
        fmt::format("no device {}: the driver finds {}", options.device, found.devices.size()));
  }
  const GpuInfo& facts = found.devices[static_cast<std::size_t>(options.device)];
  if (facts.compute_capability < k_lowest_capability) {
    throw VendorError(Failure::unavailable, too_old(facts));
  }
  check(cudaSetDevice(options.device), "cudaSetDevice");
  return std::make_unique<RealVendor>(options);
}

}  // namespace halfstep::backend::cuda
