#include "app/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/paths.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

/// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* words, const char* directory, int out, int err) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || chdir(directory) != 0)
    _exit(126);
  execvp(words[0], words);
  _exit(127);
}

int create(const std::string& path) {
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error("cannot create " + path);
  return file;
}

}  // namespace

Process::Process(const std::vector<std::string>& words, const fs::path& directory) {
  static std::atomic<int> count{0};
  const int number = ++count;
  out_path_ = (directory / fmt::format(".out-{}", number)).string();
  err_path_ = (directory / fmt::format(".err-{}", number)).string();
  const int out = create(out_path_), err = create(err_path_);
  std::vector<std::string> copy = words;
  std::vector<char*> pointers;
  for (std::string& word : copy) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string place = directory.string();
  start_ = std::chrono::steady_clock::now();
  pid_ = fork();
  if (pid_ == 0) become(pointers.data(), place.c_str(), out, err);
  close(out);
  close(err);
  if (pid_ < 0) throw std::runtime_error("cannot start " + words.at(0));
}

Process::~Process() {
  if (reaped_) return;
  send(SIGKILL);
  reap(0);
}

void Process::send(int signal) const {
  if (!reaped_) kill(pid_, signal);
}

bool Process::reap(int flags) {
  if (!reaped_ && waitpid(pid_, &status_, flags) == pid_) reaped_ = true;
  return reaped_;
}

bool Process::running() { return !reap(WNOHANG); }

Finished Process::wait() {
  reap(0);
  Finished end;
  if (WIFEXITED(status_)) end.exit_code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) end.signal = WTERMSIG(status_);
  end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  end.out = read_text(out_path_);
  end.err = read_text(err_path_);
  fs::remove(out_path_);
  fs::remove(err_path_);
  return end;
}

std::vector<std::string> halfstep_words(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program().string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Finished halfstep(const std::vector<std::string>& arguments, const fs::path& directory) {
  return Process(halfstep_words(arguments), directory).wait();
}

std::string python_with_numpy(const std::filesystem::path& directory) {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (Process({python, "-c", "import numpy"}, directory).wait().exit_code == 0) return python;
  }
  return {};
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> found;
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    found.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return found;
}

}  // namespace halfstep::test
