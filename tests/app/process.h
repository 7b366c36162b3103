#pragma once
// The built program as a process of its own.

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/temporary_directory.h"

namespace halfstep::test {

/// The exit code of a process and its output.
struct Finished {
  int exit_code = -1;  ///< -1 when a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
  double seconds = 0;
};

/// A process under way; its working directory is `directory`. Killed when dropped.
class Process {
 public:
  /// `words[0]` is a path or a name to look up.
  Process(const std::vector<std::string>& words, const std::filesystem::path& directory);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const;
  int id() const { return pid_; }
  bool running();
  Finished wait();

 private:
  bool reap(int flags);

  int pid_ = -1;
  bool reaped_ = false;
  int status_ = 0;
  std::string out_path_, err_path_;
  std::chrono::steady_clock::time_point start_;
};

/// Runs halfstep with these arguments in `directory`.
Finished halfstep(const std::vector<std::string>& arguments,
                  const std::filesystem::path& directory);

/// {path of halfstep, arguments...}
std::vector<std::string> halfstep_words(const std::vector<std::string>& arguments);

/// A Python that has numpy; "" where there is none.
std::string python_with_numpy(const std::filesystem::path& directory);

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

bool holds(std::string_view text, std::string_view part);
/// The lines that end with a newline, without it.
std::vector<std::string> lines(const std::string& text);

}  // namespace halfstep::test
