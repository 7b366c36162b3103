#include "comm/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/mpi.h"
#include "core/error.h"

namespace halfstep::comm {
namespace {

// The constants of the two binary interfaces. Open MPI's handles are addresses of objects that the
// library exports; those of MPICH's interface, which MPICH, Intel MPI and MVAPICH share, are
// integers with fixed values. Sources: mpi.h of Open MPI 4.1 and of MPICH 4.0; both projects keep
// them (libmpi.so.40 since Open MPI 3, libmpi.so.12 since MPICH 3.1).

struct OpenMpi {
  using Handle = void*;
  static Handle world(const LoadedLibrary& l) { return l.find("ompi_mpi_comm_world"); }
  static Handle byte(const LoadedLibrary& l) { return l.find("ompi_mpi_byte"); }
  static Handle errors_return(const LoadedLibrary& l) { return l.find("ompi_mpi_errors_return"); }
  static void* ignored_status() { return nullptr; }
  static void* in_place() { return std::bit_cast<void*>(std::intptr_t{1}); }
};

struct Mpich {
  using Handle = int;
  static Handle world(const LoadedLibrary&) { return 0x44000000; }
  static Handle byte(const LoadedLibrary&) { return 0x4c00010d; }
  static Handle errors_return(const LoadedLibrary&) { return 0x54000001; }
  static void* ignored_status() { return std::bit_cast<void*>(std::intptr_t{1}); }
  static void* in_place() { return std::bit_cast<void*>(std::intptr_t{-1}); }
};

template <class Handle>
struct Functions {
  int (*init_thread)(int*, char***, int, int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*comm_rank)(Handle, int*) = nullptr;
  int (*comm_size)(Handle, int*) = nullptr;
  int (*comm_dup)(Handle, Handle*) = nullptr;
  int (*comm_set_errhandler)(Handle, Handle) = nullptr;
  int (*iallgather)(const void*, int, Handle, void*, int, Handle, Handle, Handle*) = nullptr;
  int (*iallgatherv)(
      const void*, int, Handle, void*, const int*, const int*, Handle, Handle, Handle*) = nullptr;
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*cancel)(Handle*) = nullptr;
  int (*test)(Handle*, int*, void*) = nullptr;
  int (*error_string)(int, char*, int*) = nullptr;
  int (*get_library_version)(char*, int*) = nullptr;

  /// The name of a function that the library lacks, or nullptr.
  const char* load(const LoadedLibrary& library) {
    const char* missing = nullptr;
    const auto get = [&](auto& function, const char* symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(symbol));
      if (function == nullptr) missing = symbol;
    };
    get(init_thread, "MPI_Init_thread");
    get(finalize, "MPI_Finalize");
    get(comm_rank, "MPI_Comm_rank");
    get(comm_size, "MPI_Comm_size");
    get(comm_dup, "MPI_Comm_dup");
    get(comm_set_errhandler, "MPI_Comm_set_errhandler");
    get(iallgather, "MPI_Iallgather");
    get(iallgatherv, "MPI_Iallgatherv");
    get(isend, "MPI_Isend");
    get(irecv, "MPI_Irecv");
    get(cancel, "MPI_Cancel");
    get(test, "MPI_Test");
    get(error_string, "MPI_Error_string");
    get(get_library_version, "MPI_Get_library_version");
    return missing;
  }
};

/// Longer than MPI_MAX_LIBRARY_VERSION_STRING (8192 in MPICH) and MPI_MAX_ERROR_STRING.
constexpr std::size_t k_max_text = 16384;
constexpr int k_thread_serialized = 2;
constexpr int k_tag = 1;

template <class Interface>
class Library final : public Mpi {
  using Handle = typename Interface::Handle;

 public:
  explicit Library(const LoadedLibrary& library) : library_(library) {
    const char* missing = mpi_.load(library);
    require(missing == nullptr, "an MPI library without {}", missing == nullptr ? "" : missing);
  }

  void start() override {
    if (mpi_.init_thread(nullptr, nullptr, k_thread_serialized, &level_) != 0) {
      throw UserError(ErrorKind::unavailable, {}, "MPI cannot be started (MPI_Init_thread failed)");
    }
    const Handle world = Interface::world(library_);
    byte_ = Interface::byte(library_);
    for (Handle& channel : channels_) {
      check(mpi_.comm_dup(world, &channel));
      check(mpi_.comm_set_errhandler(channel, Interface::errors_return(library_)));
    }
    check(mpi_.comm_rank(world, &rank_));
    check(mpi_.comm_size(world, &size_));
  }

  void finish() override { mpi_.finalize(); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool serialized() const override { return level_ >= k_thread_serialized; }

  std::string version() const override {
    std::string text(k_max_text, '\0');
    int length = 0;
    if (mpi_.get_library_version(text.data(), &length) != 0) return interface_name(library_);
    text.resize(static_cast<std::size_t>(length));
    std::replace(text.begin(), text.end(), '\t', ' ');
    return text.substr(0, text.find_first_of(",\n"));
  }

  Request allgather(Channel channel, std::byte* all, int bytes) override {
    return begin([&](Handle* handle) {
      return mpi_.iallgather(
          Interface::in_place(), bytes, byte_, all, bytes, byte_, communicator(channel), handle);
    });
  }

  Request allgatherv(Channel channel,
                     std::byte* all,
                     const int* bytes,
                     const int* offsets) override {
    return begin([&](Handle* handle) {
      return mpi_.iallgatherv(Interface::in_place(),
                              bytes[rank_],
                              byte_,
                              all,
                              bytes,
                              offsets,
                              byte_,
                              communicator(channel),
                              handle);
    });
  }

  Request send(Channel channel, const std::byte* from, int bytes, int to) override {
    return begin([&](Handle* handle) {
      return mpi_.isend(from, bytes, byte_, to, k_tag, communicator(channel), handle);
    });
  }

  Request receive(Channel channel, std::byte* to, int bytes, int from) override {
    return begin([&](Handle* handle) {
      return mpi_.irecv(to, bytes, byte_, from, k_tag, communicator(channel), handle);
    });
  }

  void cancel(Request& request) override {
    Handle handle = unpack(request);
    check(mpi_.cancel(&handle));
    int done = 0;
    while (done == 0) check(mpi_.test(&handle, &done, Interface::ignored_status()));
    request = pack(handle);
  }

  bool test(Request& request) override {
    Handle handle = unpack(request);
    int done = 0;
    check(mpi_.test(&handle, &done, Interface::ignored_status()));
    request = pack(handle);
    return done != 0;
  }

 private:
  static_assert(sizeof(Handle) <= sizeof(Request::handle));

  static Request pack(Handle handle) {
    Request request;
    std::memcpy(&request.handle, &handle, sizeof handle);
    return request;
  }
  static Handle unpack(const Request& request) {
    Handle handle{};
    std::memcpy(&handle, &request.handle, sizeof handle);
    return handle;
  }

  Handle communicator(Channel channel) const {
    return channels_[static_cast<std::size_t>(channel)];
  }

  template <class F>
  Request begin(F f) {
    Handle handle{};
    check(f(&handle));
    return pack(handle);
  }

  void check(int code) const {
    if (code == 0) return;
    std::string text(k_max_text, '\0');
    int length = 0;
    mpi_.error_string(code, text.data(), &length);
    text.resize(static_cast<std::size_t>(length));
    throw UserError(ErrorKind::ranks, {}, fmt::format("MPI: {}", text));
  }

  LoadedLibrary library_;
  Functions<Handle> mpi_;
  Handle byte_{};
  std::array<Handle, k_channels> channels_{};
  int level_ = 0, rank_ = 0, size_ = 1;
};

bool is_open_mpi(const LoadedLibrary& library) {
  return library.find("ompi_mpi_comm_world") != nullptr;
}

/// The name of the first function that a library lacks; nullptr: it has all.
const char* missing_function(const LoadedLibrary& library) {
  if (is_open_mpi(library)) return Functions<OpenMpi::Handle>().load(library);
  return Functions<Mpich::Handle>().load(library);
}

/// Open MPI since version 3, the common name of MPICH's interface, and Debian's MPICH.
constexpr std::array<const char*, 4> k_open_mpi_first{
    "libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so"};
/// Where mpiexec of MPICH or Intel MPI started the ranks.
constexpr std::array<const char*, 4> k_mpich_first{
    "libmpich.so.12", "libmpi.so.12", "libmpi.so", "libmpi.so.40"};

}  // namespace

LoadedLibrary::LoadedLibrary(const std::string& file)
    : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
  if (handle_ != nullptr) return;
  const char* text = ::dlerror();
  error_ = text == nullptr ? file + " cannot be loaded" : text;
}

void* LoadedLibrary::find(const char* symbol) const { return ::dlsym(handle_, symbol); }

const char* interface_name(const LoadedLibrary& library) {
  return is_open_mpi(library) ? "Open MPI" : "MPICH";
}

std::unique_ptr<Mpi> open_mpi_library(const LoadedLibrary& library) {
  if (is_open_mpi(library)) return std::make_unique<Library<OpenMpi>>(library);
  return std::make_unique<Library<Mpich>>(library);
}

FoundLibrary find_library(const std::string& name, bool mpich_first) {
  const auto& defaults = mpich_first ? k_mpich_first : k_open_mpi_first;
  std::vector<std::string> files{name};
  if (name.empty()) files.assign(defaults.begin(), defaults.end());
  FoundLibrary found;
  for (const std::string& file : files) {
    LoadedLibrary library(file);
    if (!library) {
      if (found.problem.empty()) found.problem = library.error();
      continue;
    }
    const char* missing = missing_function(library);
    if (missing == nullptr) return {file, std::move(library), ""};
    found.problem = fmt::format("{} has no {}", file, missing);
  }
  return found;
}

MpiLibrary find_mpi(const MpiOptions& options) {
  const FoundLibrary found = find_library(options.library, options.mpich);
  if (!found.library) return {"", "", "", found.problem};
  return {
      found.file, interface_name(*found.library), open_mpi_library(*found.library)->version(), ""};
}

}  // namespace halfstep::comm
