#pragma once
// An MPI library that is loaded at run time, behind an interface that is independent of its ABI.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace halfstep::comm {

/// A shared library; converts to false where it cannot be loaded.
class LoadedLibrary {
 public:
  /// Loads with RTLD_GLOBAL, since MPI libraries load plugins that refer to their symbols.
  explicit LoadedLibrary(const std::string& file);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  /// nullptr without a symbol of this name.
  void* find(const char* symbol) const;

 private:
  void* handle_ = nullptr;  ///< never closed: MPI's threads and exit handlers stay in it
  std::string error_;
};

class Mpi {
 public:
  /// Operations of one channel between the same ranks are started in the same order on all of them;
  /// those of several channels in any order.
  enum class Channel { scatter, gather, direct, text, copies, presence };
  static constexpr int k_channels = 6;

  /// A pending operation; holds MPI's handle.
  struct Request {
    std::intptr_t handle = 0;
  };

  virtual ~Mpi() = default;

  /// MPI_Init_thread and the channels; once in a process. Errors: UserError (unavailable).
  virtual void start() = 0;
  /// MPI_Finalize; waits for all ranks.
  virtual void finish() = 0;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether several threads may call it, one at a time.
  virtual bool serialized() const = 0;
  virtual std::string version() const = 0;

  // Nonblocking operations. Errors: UserError (ranks) where MPI reports an error.

  /// In place: block rank() of `all`, of `bytes` bytes, is sent to every rank.
  virtual Request allgather(Channel channel, std::byte* all, int bytes) = 0;
  /// The same with blocks of different sizes.
  virtual Request allgatherv(Channel channel,
                             std::byte* all,
                             const int* bytes,
                             const int* offsets) = 0;
  virtual Request send(Channel channel, const std::byte* from, int bytes, int to) = 0;
  virtual Request receive(Channel channel, std::byte* to, int bytes, int from) = 0;
  /// Cancels a receive() that has not completed.
  virtual void cancel(Request& request) = 0;
  /// Whether the operation has completed; advances all operations.
  virtual bool test(Request& request) = 0;
};

/// The name of the library's binary interface.
const char* interface_name(const LoadedLibrary& library);
/// Errors: InternalError where a function is missing.
std::unique_ptr<Mpi> open_mpi_library(const LoadedLibrary& library);

/// A usable library, or the reason why there is none.
struct FoundLibrary {
  std::string file;
  std::optional<LoadedLibrary> library;
  std::string problem;  ///< of the first file where `library` is empty
};

/// Loads the library `name`; "": the first of the default names that has all functions, MPICH's
/// before Open MPI's if `mpich_first`.
FoundLibrary find_library(const std::string& name, bool mpich_first);

}  // namespace halfstep::comm
