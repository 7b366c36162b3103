#pragma once
// The communicator of ranks started by MPI. The MPI library is loaded at run time, without its
// headers: Open MPI, or a library of the MPICH ABI (MPICH, Intel MPI, MVAPICH). A process without
// ranks loads none.

#include <memory>
#include <string>
#include <variant>

#include "comm/communicator.h"

namespace halfstep::comm {

struct MpiOptions {
  std::string library;   ///< file or name for the loader; "": the usual names in turn
  int ranks = 0;         ///< that the launcher started; 0: not known
  std::string launcher;  ///< "mpirun", "srun": for messages
  bool mpich = false;    ///< whether it is one of MPICH's interface, whose library comes first then
};

/// The library that start_mpi() would use, found without starting MPI.
struct MpiLibrary {
  std::string file, interface;  ///< "libmpi.so.40", "Open MPI"
  std::string version;          ///< "Open MPI v4.1.4"
  std::string problem;          ///< empty where the library can be used
};
MpiLibrary find_mpi(const MpiOptions& options);

/// Starts MPI; at most once in a process. Errors: UserError (unavailable) without a usable library,
/// and where MPI reports another number of ranks than the launcher started.
std::shared_ptr<Communicator> start_mpi(const MpiOptions& options);

}  // namespace halfstep::comm
