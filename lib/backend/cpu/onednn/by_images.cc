#include "backend/cpu/onednn/by_images.h"

#include <algorithm>
#include <atomic>

#include "backend/cpu/onednn/onednn.h"
#include "core/parallel.h"
#include "core/thread_pool.h"

namespace halfstep::backend::cpu::onednn {
namespace {

/// The split of a batch into chunks of `images` images, the last one of `rest`.
struct BatchSplit {
  std::int64_t images = 1, rest = 1, chunks = 1;
  std::int64_t parts = 1;  ///< of the chunks, each computed by one thread at a time
};

/// Bytes that an image of the operands, and of a result with images, has as float32.
std::int64_t image_bytes(const NodeView& node, const ImageOp& op) {
  std::int64_t elements = op.sums ? 0 : node.output().shape.elements();
  for (const std::size_t port : op.inputs) elements += node.input(port).shape.elements();
  return std::max<std::int64_t>(elements / op.batch, 1) * static_cast<std::int64_t>(sizeof(float));
}

BatchSplit split_batch(const NodeView& node, const Capabilities& capabilities, const ImageOp& op) {
  BatchSplit c{.images = op.batch, .rest = op.batch};
  if (!keeps_to_calling_thread()) return c;
  constexpr double k_part_flops = 1 << 20;
  constexpr std::int64_t k_cached_bytes = 512 << 10;
  c.parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(op.flops / k_part_flops),
                                     1,
                                     std::min<std::int64_t>(capabilities.threads, op.batch));
  // More chunks than threads, if a chunk takes much longer than its calls, so that a slow thread
  // computes fewer of them. The parts of sums are fixed.
  constexpr double k_chunk_flops = 1 << 24;
  const std::int64_t min_chunks =
      !op.sums && op.flops > 2 * k_chunk_flops * static_cast<double>(c.parts) ? 2 * c.parts
                                                                              : c.parts;
  // Adding the sum of a chunk should take a small part of the time to compute it.
  const std::int64_t sum_bytes =
      op.sums ? node.output().shape.elements() * static_cast<std::int64_t>(sizeof(float)) : 0;
  const std::int64_t cached =
      std::max<std::int64_t>(std::max(k_cached_bytes, 8 * sum_bytes) / image_bytes(node, op), 1);
  const std::int64_t chunks = std::max(divide_up(op.batch, cached), min_chunks);
  // The same number for each part, of equal size as far as the batch allows.
  c.images = divide_up(op.batch, divide_up(chunks, c.parts) * c.parts);
  c.chunks = divide_up(op.batch, c.images);
  c.rest = op.batch - (c.chunks - 1) * c.images;
  c.parts = std::min(c.parts, c.chunks);
  return c;
}

class ByImages final : public Launch {
 public:
  ByImages(const NodeView& node,
           const Capabilities& capabilities,
           Arithmetic arithmetic,
           const ImageOp& op)
      : loops_(vector::loops(capabilities.isa)),
        split_(split_batch(node, capabilities, op)),
        next_(static_cast<std::size_t>(split_.parts)) {
    for (std::size_t i = 0; i < node.inputs(); ++i) {
      const bool images = std::find(op.inputs.begin(), op.inputs.end(), i) != op.inputs.end();
      in_.push_back(port(node.input(i), images, op.batch));
      if (!images) shared_elements_ += node.input(i).shape.elements();
    }
    out_ = port(node.output(), !op.sums, op.batch);
    for (std::int64_t part = 0; part < split_.parts; ++part) {
      add_program(node, capabilities, arithmetic, op, split_.images);
    }
    if (split_.rest < split_.images) add_program(node, capabilities, arithmetic, op, split_.rest);
    if (op.sums) {
      sum_floats_ = node.output().shape.elements();
      for (std::int64_t part = 0; part < split_.parts; ++part) {
        sum_offsets_.push_back(
            workspace_.reserve(sum_floats_ * static_cast<std::int64_t>(sizeof(float))));
      }
      sums_.resize(sum_offsets_.size());
    }
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(workspace_.bytes()); }

  void run(const Args& args) override {
    if (sum_floats_ == 0) {
      prepare(args, false);
      if (split_.rest < split_.images) prepare(args, true);
      run_all_chunks(args);
      return;
    }
    parallel_for_each(split_.parts, 1, [&](std::int64_t part) { add_chunks(args, part); });
    constexpr std::int64_t k_grain = 1 << 13;
    const vector::Sink sink(loops_, args.out[0].dtype);
    parallel_for(sum_floats_, k_grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t n = end - begin;
      float* sum = sums_[0] + begin;
      float* to = sink.buffer(args.out[0].data, begin, sum);
      if (to != sum) std::copy_n(sum, n, to);
      for (std::size_t part = 1; part < sums_.size(); ++part) {
        const float* other = sums_[part] + begin;
        for (std::int64_t k = 0; k < n; ++k) to[k] += other[k];
      }
      sink.store(args.out[0].data, begin, n, to);
    });
  }

 private:
  static constexpr std::int64_t k_shared_elements = 1 << 16;

  /// A tensor of a chunk: the shape for `split_.images` and for `split_.rest` images, and the bytes
  /// from one image to the next, 0 without images.
  struct Port {
    TensorView chunk, rest;
    std::int64_t image_bytes = 0;
  };
  struct ChunkProgram {
    std::unique_ptr<Stages> stages;
    std::int64_t workspace = 0;  ///< offset
    std::size_t result = 0;      ///< offset of a sum
    std::vector<TensorView> in = {};
  };

  Port port(const graph::TensorType& type, bool images, std::int64_t batch) const {
    Port p{{type.dtype, type.shape}, {type.dtype, type.shape}};
    if (!images) return p;
    p.chunk.shape = type.shape.with(0, split_.images);
    p.rest.shape = type.shape.with(0, split_.rest);
    p.image_bytes =
        type.shape.elements() / batch * static_cast<std::int64_t>(size_bytes(type.dtype));
    return p;
  }

  void add_program(const NodeView& node,
                   const Capabilities& capabilities,
                   Arithmetic arithmetic,
                   const ImageOp& op,
                   std::int64_t images) {
    Program program(node, arithmetic, capabilities);
    std::optional<std::size_t> result;
    PreparedStages done;
    on_calling_thread([&] { result = op.add(program, images); });
    program.lay_out_shared();
    on_calling_thread([&] { done = program.finish_stages(); });
    programs_.push_back(
        {.stages = std::move(done.stages),
         .workspace = workspace_.reserve(static_cast<std::int64_t>(done.workspace_bytes)),
         .result = result.value_or(0),
         .in = std::vector<TensorView>(in_.size())});
  }

  std::int64_t first_chunk(std::int64_t part) const { return split_.chunks * part / split_.parts; }

  /// Each part begins with chunks of its own, the images that its thread has in its caches from the
  /// op before, and continues with those that other parts have not begun.
  void run_all_chunks(const Args& args) {
    for (std::int64_t part = 0; part < split_.parts; ++part) {
      next_[static_cast<std::size_t>(part)].store(first_chunk(part), std::memory_order_relaxed);
    }
    parallel_for_each(split_.parts, 1, [&](std::int64_t part) {
      for (std::int64_t i = 0; i < split_.parts; ++i) {
        const std::int64_t owner = (part + i) % split_.parts;
        auto& next = next_[static_cast<std::size_t>(owner)];
        for (std::int64_t chunk = next.fetch_add(1); chunk < first_chunk(owner + 1);
             chunk = next.fetch_add(1)) {
          run_chunk(args, chunk, part);
        }
      }
    });
  }

  /// Sums the chunks of a part.
  void add_chunks(const Args& args, std::int64_t part) {
    const std::int64_t first = first_chunk(part), end = first_chunk(part + 1);
    float*& sum = sums_[static_cast<std::size_t>(part)];
    sum = run_chunk(args, first, part);
    if (first + 1 == end) return;
    const float* result = sum;
    sum = reinterpret_cast<float*>(args.workspace + sum_offsets_[static_cast<std::size_t>(part)]);
    std::copy_n(result, sum_floats_, sum);
    for (std::int64_t i = first + 1; i < end; ++i) {
      result = run_chunk(args, i, part);
      for (std::int64_t k = 0; k < sum_floats_; ++k) sum[k] += result[k];
    }
  }

  bool is_rest(std::int64_t chunk) const {
    return chunk + 1 == split_.chunks && split_.rest < split_.images;
  }

  /// A tensor in chunk `chunk` of a launch.
  TensorView view(const Port& port, const TensorView& tensor, std::int64_t chunk) const {
    TensorView of_chunk = is_rest(chunk) ? port.rest : port.chunk;
    of_chunk.data = static_cast<std::byte*>(tensor.data) + chunk * split_.images * port.image_bytes;
    return of_chunk;
  }

  /// Prepares the operands that all chunks share, for full chunks or for the rest.
  void prepare(const Args& args, bool rest) {
    ChunkProgram& program = rest ? programs_.back() : programs_.front();
    for (std::size_t i = 0; i < in_.size(); ++i) {
      program.in[i] = view(in_[i], args.in[i], rest ? split_.chunks - 1 : 0);
    }
    const Args shared{program.in, args.out, args.workspace + program.workspace};
    // For a small filter another parallel region costs more than its reorder.
    if (shared_elements_ < k_shared_elements) {
      on_calling_thread([&] { program.stages->prepare(shared); });
    } else {
      program.stages->prepare(shared);
    }
  }

  /// Returns the sum of the chunk, where there is one.
  float* run_chunk(const Args& args, std::int64_t chunk, std::int64_t part) {
    const bool rest = is_rest(chunk);
    ChunkProgram& program = rest ? programs_.back() : programs_[static_cast<std::size_t>(part)];
    for (std::size_t i = 0; i < in_.size(); ++i) program.in[i] = view(in_[i], args.in[i], chunk);
    const TensorView out = view(out_, args.out[0], chunk);
    const Args of_chunk{program.in, {&out, 1}, args.workspace + program.workspace};
    std::byte* shared = args.workspace + (rest ? program : programs_.front()).workspace;
    on_calling_thread([&] { program.stages->run_chunk(of_chunk, shared); });
    return reinterpret_cast<float*>(of_chunk.workspace + program.result);
  }

  const vector::Loops& loops_;
  BatchSplit split_;
  std::vector<Port> in_;
  Port out_;
  std::int64_t shared_elements_ = 0;
  std::vector<ChunkProgram> programs_;           ///< one for each part, and one for the rest
  std::vector<std::atomic<std::int64_t>> next_;  ///< chunk of each part
  std::int64_t sum_floats_ = 0;
  std::vector<std::int64_t> sum_offsets_;  ///< of the sum of each part
  std::vector<float*> sums_;               ///< in the launch that runs
  WorkspaceLayout workspace_;
};

}  // namespace

Prepared prepare_by_images(const NodeView& node,
                           const Capabilities& capabilities,
                           Arithmetic arithmetic,
                           const ImageOp& op) {
  auto launch = std::make_unique<ByImages>(node, capabilities, arithmetic, op);
  const std::size_t bytes = launch->workspace_bytes();
  return {std::move(launch), bytes};
}

}  // namespace halfstep::backend::cpu::onednn
