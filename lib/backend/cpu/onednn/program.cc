#include "backend/cpu/onednn/program.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <variant>

#include "backend/cpu/onednn/onednn.h"
#include "core/error.h"

namespace halfstep::backend::cpu::onednn {
namespace {

/// oneDNN does not check whether it got memory for generated code, and writes to address 0. A
/// primitive has many kernels of 256 KiB of address space each. Errors: std::bad_alloc.
void expect_memory_for_code() {
  constexpr std::size_t k_bytes = std::size_t{64} << 20;
  void* memory = mmap(nullptr, k_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  munmap(memory, k_bytes);
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine k_engine(dnnl::engine::kind::cpu, 0);
  return k_engine;
}

const dnnl::primitive_attr& attributes() {
  static const dnnl::primitive_attr k_attributes = [] {
    dnnl::primitive_attr a;
    a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return a;
  }();
  return k_attributes;
}

Accepts accepts(const NodeView& node,
                const Capabilities& capabilities,
                Arithmetic arithmetic,
                Build build) {
  const DType dtype = node.output().dtype;
  if (arithmetic == Arithmetic::by_float32) {
    if (!is_half(dtype)) return Accepts::no("not a 16-bit dtype");
  } else if (arithmetic == Arithmetic::split) {
    if (dtype != DType::float16) return Accepts::no("not float16");
    if (capabilities.isa < Isa::amx) {
      return Accepts::no("parts of float16 are slower than float32 without amx");
    }
  } else if (dtype == DType::bfloat16) {
    const Isa isa = std::min(capabilities.isa, effective_isa());
    if (isa < Isa::avx512_bf16) {
      return Accepts::no(fmt::format("{} has no bfloat16 instructions", name(isa)));
    }
  } else if (dtype != DType::float32) {
    return Accepts::no(fmt::format("oneDNN does not support {} for this op", name(dtype)));
  }
  bool empty = node.output().shape.elements() == 0;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    empty = empty || node.input(i).shape.elements() == 0;
  }
  if (empty) return Accepts::no("empty");
  // Only oneDNN knows the configurations it supports. The primitive built here stays in its cache
  // for prepare().
  try {
    (void)build(node, capabilities, arithmetic);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    return Accepts::no(fmt::format("oneDNN: {}", error.what()));
  }
  return Accepts::yes();
}

/// The launch: memory objects, the location of their data, and the primitives in order.
class Program::Run final : public Stages {
 public:
  struct Slot {
    dnnl::memory memory;
    Kind kind;
    std::size_t where;  ///< port, or offset into the workspace
    const void* last = nullptr;
  };
  struct Primitive {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> args;
  };
  struct Widen {
    std::size_t port;
    std::size_t offset;
    std::int64_t gap = 0;  ///< between rows of the last axis
  };
  struct Narrow {
    std::size_t port;
    std::size_t offset;
  };
  struct Halve {
    std::size_t port;
    std::size_t offset;
    Split split;
  };

  explicit Run(const vector::Loops& l) : loops(l), stream(engine()) {}

  void prepare(const Args& args) override {
    if (first_of_chunk == 0) return;
    set_addresses(args, args.workspace);
    run_independent_loops([&] {
      for (std::size_t i = 0; i < first_of_chunk; ++i) run_primitive(i, args);
    });
  }

  void run_chunk(const Args& args, std::byte* shared) override {
    set_addresses(args, shared);
    const auto run_primitives = [&] {
      for (std::size_t i = first_of_chunk; i < stages.size(); ++i) run_primitive(i, args);
    };
    if (on_one_thread) {
      on_calling_thread(run_primitives);
    } else {
      run_primitives();
    }
  }

  const vector::Loops& loops;
  dnnl::stream stream;
  std::vector<Slot> slots;
  std::vector<std::variant<Primitive, Widen, Narrow, Halve>> stages;
  std::size_t first_of_chunk = 0;
  bool on_one_thread = false;

 private:
  void set_addresses(const Args& args, std::byte* shared) {
    for (Slot& slot : slots) {
      void* data = slot.kind == Kind::input       ? args.in[slot.where].data
                   : slot.kind == Kind::output    ? args.out[slot.where].data
                   : slot.kind == Kind::workspace ? args.workspace + slot.where
                                                  : shared + slot.where;
      if (data == slot.last) continue;
      check(dnnl_memory_set_data_handle(slot.memory.get(), data));
      slot.last = data;
    }
  }

  void run_primitive(std::size_t i, const Args& args) {
    const auto& stage = stages[i];
    if (const auto* p = std::get_if<Primitive>(&stage)) {
      check(dnnl_primitive_execute(
          p->primitive.get(), stream.get(), static_cast<int>(p->args.size()), p->args.data()));
    } else if (const auto* w = std::get_if<Widen>(&stage)) {
      const TensorView& x = args.in[w->port];
      float* y = at(args, w->offset);
      if (w->gap == 0) {
        vector::widen(loops, x.dtype, x.data, y, x.elements());
      } else {
        const std::int64_t columns = x.shape.back();
        const std::int64_t rows = x.elements() / columns;
        vector::widen_rows(loops, x.dtype, x.data, y, rows, columns, columns + w->gap);
      }
    } else if (const auto* h = std::get_if<Halve>(&stage)) {
      vector::split_float16(loops,
                            args.in[h->port].data,
                            h->split.outer,
                            h->split.inner,
                            h->split.parts,
                            args.workspace + h->offset);
    } else {
      const Narrow& n = std::get<Narrow>(stage);
      const TensorView& y = args.out[n.port];
      vector::narrow(loops, at(args, n.offset), y.dtype, y.data, y.elements());
    }
  }

  static float* at(const Args& args, std::size_t offset) {
    return reinterpret_cast<float*>(args.workspace + offset);
  }
  static void check(dnnl_status_t status) {
    require(status == dnnl_success, "oneDNN status {}", static_cast<int>(status));
  }
};

Program::Program(const NodeView& node, Arithmetic arithmetic, const Capabilities& capabilities)
    : arithmetic_(arithmetic),
      operand_type_(arithmetic == Arithmetic::split || (arithmetic == Arithmetic::native &&
                                                        node.output().dtype == DType::bfloat16)
                        ? dnnl::memory::data_type::bf16
                        : dnnl::memory::data_type::f32),
      run_(std::make_unique<Run>(vector::loops(capabilities.isa))) {
  expect_memory_for_code();
}

Program::~Program() = default;

dnnl::memory::data_type Program::type(Role role) const {
  const bool is_float32 =
      role == Role::sum || (role == Role::result && arithmetic_ == Arithmetic::split);
  return is_float32 ? dnnl::memory::data_type::f32 : operand_type_;
}

dnnl::memory::desc Program::dense(const dnnl::memory::dims& dims,
                                  std::initializer_list<std::size_t> stored,
                                  Role role) const {
  dnnl::memory::dims strides(dims.size(), 1);
  dnnl::memory::dim stride = 1;
  for (auto axis = std::rbegin(stored); axis != std::rend(stored); ++axis) {
    strides[*axis] = stride;
    stride *= dims[*axis];
  }
  return {dims, type(role), strides};
}

dnnl::memory::desc Program::matrix(const dnnl::memory::dims& dims,
                                   bool transposed,
                                   dnnl::memory::dim gap) const {
  dnnl::memory::dims strides(dims.size(), 1);
  const std::size_t row = dims.size() - 2;
  const std::size_t column = dims.size() - 1;
  strides[row] = transposed ? 1 : dims[column] + gap;
  strides[column] = transposed ? dims[row] + gap : 1;
  dnnl::memory::dim stride = dims[transposed ? column : row] * strides[transposed ? column : row];
  for (std::size_t axis = row; axis-- > 0; stride *= dims[axis]) strides[axis] = stride;
  return {dims, operand_type_, strides};
}

dnnl::memory::desc Program::tagged(const dnnl::memory::dims& dims,
                                   dnnl::memory::format_tag tag,
                                   Role role) const {
  return {dims, type(role), tag};
}

Program::Memory Program::input(std::size_t port, const dnnl::memory::desc& desc) {
  if (arithmetic_ == Arithmetic::native) return add(desc, Kind::input, port);
  const std::size_t offset = reserve(desc.get_size());
  run_->stages.emplace_back(Run::Widen{port, offset});
  return add(desc, Kind::workspace, offset);
}

Program::Memory Program::spread_input(std::size_t port,
                                      const dnnl::memory::dims& dims,
                                      dnnl::memory::dim gap) {
  const dnnl::memory::desc spread = matrix(dims, false, gap);
  if (arithmetic_ == Arithmetic::native) return in_layout(input(port, matrix(dims, false)), spread);
  const std::size_t offset = reserve(spread.get_size());
  run_->stages.emplace_back(Run::Widen{port, offset, gap});
  return add(spread, Kind::workspace, offset);
}

Program::Memory Program::split_input(std::size_t port,
                                     const dnnl::memory::desc& desc,
                                     Split split) {
  const std::size_t offset = reserve(desc.get_size());
  run_->stages.emplace_back(Run::Halve{port, offset, std::move(split)});
  return add(desc, Kind::workspace, offset);
}

Program::Memory Program::output(std::size_t port, const dnnl::memory::desc& desc) {
  if (arithmetic_ == Arithmetic::native) return add(desc, Kind::output, port);
  const std::size_t offset = reserve(desc.get_size());
  late_conversions_.emplace_back(port, offset);
  return add(desc, Kind::workspace, offset);
}

std::pair<Program::Memory, std::size_t> Program::result(const dnnl::memory::desc& desc) {
  const std::size_t offset = reserve(desc.get_size());
  return {add(desc, Kind::workspace, offset), offset};
}

void Program::begin_chunk() {
  run_->first_of_chunk = run_->stages.size();
  section_ = Section::chunk;
}

void Program::keep_to_calling_thread() { run_->on_one_thread = true; }

void Program::lay_out_shared() {
  // Behind the conversions of shared operands, which they read.
  std::vector<decltype(run_->stages)::value_type> chunk(
      std::make_move_iterator(run_->stages.begin() +
                              static_cast<std::ptrdiff_t>(run_->first_of_chunk)),
      std::make_move_iterator(run_->stages.end()));
  run_->stages.resize(run_->first_of_chunk);
  for (const auto& [from, to] : shared_reorders_) reorder(from, to);
  shared_reorders_.clear();
  run_->first_of_chunk = run_->stages.size();
  run_->stages.insert(run_->stages.end(),
                      std::make_move_iterator(chunk.begin()),
                      std::make_move_iterator(chunk.end()));
}

Program::Memory Program::in_layout(Memory from, const dnnl::memory::desc& wanted) {
  if (run_->slots[from].memory.get_desc() == wanted) return from;
  const Memory to = add(wanted, Kind::workspace, reserve(wanted.get_size()));
  if (section_ == Section::shared) {
    shared_reorders_.emplace_back(from, to);
  } else {
    reorder(from, to);
  }
  return to;
}

Program::Memory Program::for_layout(Memory to, const dnnl::memory::desc& wanted) {
  if (run_->slots[to].memory.get_desc() == wanted) return to;
  const Memory from = add(wanted, Kind::workspace, reserve(wanted.get_size()));
  late_reorders_.emplace_back(from, to);
  return from;
}

void Program::run(const dnnl::primitive& primitive,
                  const dnnl::memory::desc& scratchpad,
                  const std::vector<std::pair<int, Memory>>& args) {
  std::vector<dnnl_exec_arg_t> list;
  for (const auto& [arg, memory] : args) list.push_back({arg, run_->slots[memory].memory.get()});
  if (scratchpad.get_size() > 0) {
    const Memory pad = add(scratchpad, Kind::workspace, reserve(scratchpad.get_size()));
    list.push_back({DNNL_ARG_SCRATCHPAD, run_->slots[pad].memory.get()});
  }
  run_->stages.emplace_back(Run::Primitive{primitive, std::move(list)});
}

void Program::reorder(Memory from, Memory to) {
  const dnnl::memory& x = run_->slots[from].memory;
  const dnnl::memory& y = run_->slots[to].memory;
  const dnnl::reorder::primitive_desc how(x, y, attributes());
  run(dnnl::reorder(how), how.scratchpad_desc(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Program::Memory Program::add(const dnnl::memory::desc& desc, Kind kind, std::size_t where) {
  if (kind == Kind::workspace && section_ == Section::shared) kind = Kind::shared_workspace;
  run_->slots.push_back({dnnl::memory(desc, engine(), DNNL_MEMORY_NONE), kind, where});
  return run_->slots.size() - 1;
}

PreparedStages Program::finish_stages() {
  for (const auto& [from, to] : late_reorders_) reorder(from, to);
  for (const auto& [port, offset] : late_conversions_) {
    run_->stages.emplace_back(Run::Narrow{port, offset});
  }
  return {std::move(run_), static_cast<std::size_t>(workspace_.bytes())};
}

}  // namespace halfstep::backend::cpu::onednn
