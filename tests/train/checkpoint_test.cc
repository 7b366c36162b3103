#include "train/checkpoint.h"

#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <ostream>

#include "core/files.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

/// A trained run with a best epoch, as a checkpoint sees it.
struct Trained {
  Trained() {
    run.trainer().advance(8);
    progress.counters = {.attempted = 8, .applied = 8, .ordinal = 8};
    progress.message = "first";
    best = run.state().weights();
  }

  static TinyRun tiny() {
    TinyRun tiny;
    tiny.precision = "{policy: mixed_float16}";
    return tiny;
  }

  Run run{tiny().spec()};
  Progress progress;
  std::vector<Tensor> best;
};

/// Everything below a folder, by path.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = fs::relative(entry.path(), folder).string();
    files[path] = entry.is_regular_file() ? read_file(entry.path().string()) : "folder";
  }
  return files;
}

/// Files of this process may not grow beyond `bytes` while this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

/// A file system of `kibibytes` on `at`, where this process may mount one.
class TinyDisk {
 public:
  TinyDisk(const fs::path& at, int kibibytes) : at_(at.string()) {
    fs::create_directories(at);
    const std::string size = "size=" + std::to_string(kibibytes) + "k";
    mounted_ = mount("halfstep", at_.c_str(), "tmpfs", 0, size.c_str()) == 0;
  }
  ~TinyDisk() {
    if (mounted_) umount2(at_.c_str(), MNT_DETACH);
  }
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::string at_;
  bool mounted_ = false;
};

/// Saves, and says whether it succeeded. A failure is a data error that names a path.
bool saves(const std::string& directory, const Trained& trained) {
  try {
    save_checkpoint(directory, trained.run.state(), trained.progress, trained.best);
    return true;
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK_FALSE(error.problems().at(0).where.file.empty());
    return false;
  }
}

}  // namespace

TEST_CASE("checkpoint: variables, best weights and progress come back bit for bit") {
  Trained trained;
  const TemporaryDirectory directory;
  const std::string path = save_checkpoint(
      directory.path().string(), trained.run.state(), trained.progress, trained.best);
  CHECK(fs::path(path).filename() == "step-000008");
  trained.run.trainer().advance(4);
  const std::string later = trained.run.state().full_hash();

  Run other(Trained::tiny().spec());
  const Loaded loaded = load_checkpoint(path, other.state());
  CHECK(loaded.progress == trained.progress);
  REQUIRE(loaded.best.size() == trained.best.size());
  for (std::size_t i = 0; i < loaded.best.size(); ++i) {
    REQUIRE(loaded.best[i].bytes() == trained.best[i].bytes());
    CHECK(std::memcmp(loaded.best[i].view().data,
                      trained.best[i].view().data,
                      loaded.best[i].bytes()) == 0);
  }
  CHECK(other.state().full_hash() != later);
  load_checkpoint(path, trained.run.state());
  CHECK(other.state().full_hash() == trained.run.state().full_hash());
}

TEST_CASE("checkpoint: a state above the limit is refused with file and limit, before it is read") {
  const Trained trained;
  const TemporaryDirectory directory;
  const std::string path = save_checkpoint(
      directory.path().string(), trained.run.state(), trained.progress, trained.best);
  // Without checksums, as checkpoints of old are; the file is a hole and takes no disk.
  fs::resize_file(fs::path(path) / "DONE", 0);
  const std::string state = (fs::path(path) / "state.json").string();
  fs::resize_file(state, k_max_state_bytes + 1);
  Run other(Trained::tiny().spec());
  try {
    load_checkpoint(path, other.state());
    FAIL("it was read");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(error.what() == state + ": error: has 268435457 bytes, and may have at most 268435456");
  }
}

TEST_CASE("checkpoint: a DONE that cannot be one is damage, and an older checkpoint is taken") {
  Trained trained;
  const TemporaryDirectory directory;
  const std::string run = directory.path().string();
  const std::string first =
      save_checkpoint(run, trained.run.state(), trained.progress, trained.best);
  trained.progress.counters = {.attempted = 9, .applied = 9, .ordinal = 9};
  const std::string second =
      save_checkpoint(run, trained.run.state(), trained.progress, trained.best);
  CHECK(find_checkpoint(run) == second);
  fs::resize_file(fs::path(second) / "DONE", std::size_t{1} << 30);
  CHECK(find_checkpoint(run) == first);
}

TEST_CASE("checkpoint: the names it writes are known, and no others") {
  for (const char* folder : {"step-000008", "best", "last", ".tmp-step-000008", ".tmp-best"}) {
    CAPTURE(folder);
    CHECK(is_checkpoint_folder(folder));
    CHECK(is_checkpoint_file(folder, "model.safetensors"));
    CHECK_FALSE(is_checkpoint_file(folder, "model.onnx"));
  }
  for (const char* folder : {"", "step-", "step-8a", "mine", ".tmp-mine", "best2"}) {
    CAPTURE(folder);
    CHECK_FALSE(is_checkpoint_folder(folder));
    CHECK_FALSE(is_checkpoint_file(folder, "model.safetensors"));
  }
  const Trained trained;
  const TemporaryDirectory directory;
  const std::string path = save_checkpoint(
      directory.path().string(), trained.run.state(), trained.progress, trained.best);
  for (const auto& [file, text] : contents(path)) {
    CAPTURE(file);
    CHECK(is_checkpoint_file("step-000008", file));
  }
}

TEST_CASE("checkpoint: without best weights there is no file of them") {
  const Trained trained;
  const TemporaryDirectory directory;
  const std::string path =
      save_checkpoint(directory.path().string(), trained.run.state(), trained.progress, {});
  CHECK_FALSE(fs::exists(fs::path(path) / "best.safetensors"));
  Run other(Trained::tiny().spec());
  CHECK(load_checkpoint(path, other.state()).best.empty());
}

TEST_CASE("checkpoint: a file that may not grow leaves the old checkpoint or none") {
  Trained trained;
  const TemporaryDirectory reference;
  REQUIRE(saves(reference.path().string(), trained));
  std::vector<std::size_t> sizes{0, 1};
  for (const auto& [path, text] : contents(reference.path())) {
    for (const std::size_t size : {text.size() / 2, text.size() - 1, text.size()}) {
      if (text != "folder" && !text.empty()) sizes.push_back(size);
    }
  }
  std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
  for (const bool overwrite : {false, true}) {
    for (const std::size_t size : sizes) {
      CAPTURE(overwrite);
      CAPTURE(size);
      const TemporaryDirectory directory;
      const std::string path = directory.path().string();
      trained.progress.message = "first";
      if (overwrite) REQUIRE(saves(path, trained));
      const auto before = contents(directory.path() / "checkpoints");
      trained.progress.message = "later";
      bool saved = false;
      {
        const FileSizeLimit limit(size);
        saved = saves(path, trained);
      }
      CHECK(saved == (size >= largest));
      if (!saved) CHECK(contents(directory.path() / "checkpoints") == before);
      if (saved) {
        Run other(Trained::tiny().spec());
        CHECK(load_checkpoint(path, other.state()).progress.message == "later");
      }
    }
  }
}

TEST_CASE("checkpoint: a full disk leaves the old checkpoint or none") {
  Trained trained;
  const TemporaryDirectory directory;
  bool saved = false;
  for (int kibibytes = 4; kibibytes <= 1024 && !saved; kibibytes += kibibytes < 64 ? 4 : 64) {
    CAPTURE(kibibytes);
    const fs::path at = directory.path() / std::to_string(kibibytes);
    const TinyDisk disk(at, kibibytes);
    if (!disk.mounted()) {
      MESSAGE("no file system can be mounted here: " << std::strerror(errno));
      return;
    }
    saved = saves(at.string(), trained);
    CHECK(find_checkpoint(at.string()).has_value() == saved);
    std::int64_t files = 0;
    for (const auto& [path, text] : contents(at / "checkpoints")) files += text != "folder";
    CHECK(files == (saved ? 5 : 0));
  }
  CHECK(saved);
}

TEST_CASE("checkpoint: a folder that cannot be made is named") {
  const Trained trained;
  const TemporaryDirectory directory;
  write_file_atomically(directory.file("checkpoints"), "in the way");
  CHECK_FALSE(saves(directory.path().string(), trained));
  CHECK(read_file(directory.file("checkpoints")) == "in the way");
}

TEST_CASE("checkpoint: the newest ones stay, and what was broken off goes") {
  Trained trained;
  const TemporaryDirectory directory;
  const std::string path = directory.path().string();
  for (const std::int64_t ordinal : {1, 20, 300, 1000000}) {
    trained.progress.counters.ordinal = ordinal;
    REQUIRE(saves(path, trained));
  }
  save_checkpoint(path, trained.run.state(), trained.progress, {}, k_best_checkpoint);
  const fs::path root = directory.path() / "checkpoints";
  fs::create_directories(root / "step-000999");  // without DONE
  fs::create_directories(root / ".tmp-step-000007");
  CHECK(list_checkpoints(path).size() == 4);
  CHECK(find_checkpoint(path) == (root / "step-1000000").string());
  prune_checkpoints(path, 2);
  CHECK(list_checkpoints(path) == std::vector<std::string>{(root / "step-000300").string(),
                                                           (root / "step-1000000").string()});
  CHECK(fs::exists(root / k_best_checkpoint / "DONE"));
  CHECK_FALSE(fs::exists(root / "step-000999"));
  CHECK_FALSE(fs::exists(root / ".tmp-step-000007"));
}

TEST_CASE("checkpoint: folders that are not checkpoints stay, whatever their names begin with") {
  Trained trained;
  const TemporaryDirectory directory;
  const std::string path = directory.path().string();
  for (const std::int64_t ordinal : {1, 2, 3}) {
    trained.progress.counters.ordinal = ordinal;
    REQUIRE(saves(path, trained));
  }
  const fs::path root = directory.path() / "checkpoints";
  const std::vector<std::string> foreign{
      "step-notes", "step-", "step-12-old", "step-000001.bak", ".tmp-mine"};
  for (const std::string& folder : foreign) {
    fs::create_directories(root / folder);
    write_file_atomically((root / folder / "DONE").string(), "");
    write_file_atomically((root / folder / "notes.txt").string(), "mine");
  }
  fs::remove(root / "step-notes" / "DONE");
  CHECK(list_checkpoints(path).size() == 3);
  prune_checkpoints(path, 1);
  CHECK(list_checkpoints(path) == std::vector<std::string>{(root / "step-000003").string()});
  for (const std::string& folder : foreign) {
    CAPTURE(folder);
    CHECK(fs::exists(root / folder / "notes.txt"));
  }
}

TEST_CASE("checkpoint: files of others in a folder with a checkpoint's name stay") {
  Trained trained;
  const TemporaryDirectory directory;
  const std::string path = directory.path().string();
  const fs::path root = directory.path() / "checkpoints";
  const fs::path elsewhere = directory.path() / "elsewhere";
  const auto add = [](const fs::path& folder, const std::string& file) {
    fs::create_directories(folder);
    write_file_atomically((folder / file).string(), "mine");
  };
  add(root / "step-000001", "notes.txt");  // without DONE
  add(root / "step-000002", "notes.txt");  // becomes a checkpoint
  add(elsewhere, "DONE");
  fs::create_directory_symlink(elsewhere, root / "step-000000");
  for (const std::int64_t ordinal : {2, 3, 4}) {
    trained.progress.counters.ordinal = ordinal;
    REQUIRE(saves(path, trained));
  }
  CHECK(fs::exists(root / "step-000002" / "DONE"));
  prune_checkpoints(path, 2);
  for (const char* folder : {"step-000001", "step-000002"}) {
    CAPTURE(folder);
    CHECK(read_file((root / folder / "notes.txt").string()) == "mine");
    CHECK(std::distance(fs::directory_iterator(root / folder), {}) == 1);
  }
  CHECK(fs::exists(elsewhere / "DONE"));
  CHECK(fs::exists(root / "step-000003" / "DONE"));
}

}  // namespace halfstep::train
