#pragma once
// Ranks that MPI started. The MPI library is loaded at run time and needs no headers: Open MPI and
// the libraries of MPICH's binary interface (MPICH, Intel MPI, MVAPICH) are known. A process
// without ranks loads none.

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

/// The library that start_mpi() would use, without a start of MPI, or why there is none.
struct MpiLibrary {
  std::string file, interface;  ///< "libmpi.so.40", "Open MPI"
  std::string version;          ///< "Open MPI v4.1.4"
  std::string problem;          ///< empty where the library can be used
};
MpiLibrary find_mpi(const MpiOptions& options);

/// Starts MPI in this process; once. Errors: UserError (unavailable) without a usable library, and
/// where MPI sees other ranks than the launcher started.
std::shared_ptr<Communicator> start_mpi(const MpiOptions& options);

}  // namespace halfstep::comm
