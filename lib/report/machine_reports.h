#pragma once
// Reports about the machine and the program: doctor, help, verify-resume, tune.

#include <optional>
#include <string>
#include <vector>

#include "report/blocks.h"

namespace halfstep::report {

struct DtypeProbe {
  std::string device, dtype;
  bool ok = false;
  std::string kernel, caveat;
  void fields(Fields& f);
};
struct OneDnnBlock {
  std::string version, runtime;
  std::optional<std::int64_t> threads;
  std::string reason;
  void fields(Fields& f);
};
struct CudaDevice {
  std::string name, compute_capability;
  std::uint64_t memory_bytes = 0;
  std::int64_t multiprocessors = 0;
  bool tf32 = false;
  void fields(Fields& f);
};
struct CudaBlock {
  std::string absence, remedy, plugin, flavour, driver, runtime, cublas, cudnn, nccl;
  std::vector<CudaDevice> devices;
  void fields(Fields& f);
};
/// Ranks on the same host with the same kernels.
struct RankGroup {
  std::string host, cpu, isa;
  std::int64_t threads = 1, ranks = 0;
  bool operator==(const RankGroup&) const = default;
  void fields(Fields& f);
};
struct RanksProbe {
  std::string launcher, thread_level;
  std::int64_t count = 0;
  std::vector<RankGroup> groups;
  double small_sum_seconds = 0, large_sum_seconds = 0, sent_bytes_per_second = 0;
  void fields(Fields& f);
};
struct MpiBlock {
  std::string file, interface, version, absence;
  std::optional<RanksProbe> ranks;
  void fields(Fields& f);
};

struct DoctorReport {
  static constexpr std::string_view k_kind = "doctor", k_doc = "what this machine can do";
  Context context;
  std::uint64_t available_memory_bytes = 0;
  std::vector<DtypeProbe> probes;
  OneDnnBlock onednn;
  CudaBlock cuda;
  MpiBlock mpi;
  void fields(Fields& f);
};

struct ReferenceArgument {
  std::string name, path, doc, type, unit;
  bool required = false, nullable = false;
  std::optional<std::string> usual;
  std::vector<std::string> values;
  std::optional<double> minimum, maximum, above, below;
  void fields(Fields& f);
};
struct ReferenceFact {
  std::string label, text;
  void fields(Fields& f);
};
struct ReferenceEntry {
  std::string kind, name, doc;
  std::vector<ReferenceFact> facts;
  std::vector<ReferenceArgument> arguments, common_arguments;
  void fields(Fields& f);
};
struct ReferenceReport {
  static constexpr std::string_view k_kind = "reference", k_doc = "entries of the reference";
  std::string topic, text;
  std::vector<ReferenceEntry> entries;
  void fields(Fields& f);
};

struct VerifyResumeReport {
  static constexpr std::string_view k_kind = "verify_resume",
                                    k_doc = "a resumed run against an uninterrupted one";
  std::int64_t exit_code = 0, at_step = 1, steps = 1;
  bool equal = false;
  std::string whole_hash, resumed_hash;
  std::vector<std::string> differing;
  void fields(Fields& f);
};

struct TuneReport {
  static constexpr std::string_view k_kind = "tune", k_doc = "measurements of the CPU kernels";
  std::string file, origin;
  std::uint64_t measurements = 0;
  double register_gflops = 0, disturbed_share = 0;
  void fields(Fields& f);
};

}  // namespace halfstep::report
