#include "core/process_claim.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>

#include "core/error.h"

namespace halfstep {

ProcessClaim::ProcessClaim(const std::string& name) : prefix_(fmt::format("halfstep/{}/", name)) {
  const std::string address = fmt::format("{}{}", prefix_, ::getpid());
  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  // The first byte, 0, makes the address abstract.
  require(address.size() < sizeof at.sun_path, "'{}' is too long for a claim", name);
  std::ranges::copy(address, at.sun_path + 1);
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  if (socket_ >= 0 && ::bind(socket_, reinterpret_cast<const sockaddr*>(&at), bytes) != 0) {
    ::close(socket_);
    socket_ = -1;
  }
}

ProcessClaim::~ProcessClaim() {
  if (socket_ >= 0) ::close(socket_);
}

std::vector<pid_t> ProcessClaim::others() const {
  std::vector<pid_t> found;
  std::ifstream sockets("/proc/net/unix");
  const std::string wanted = " @" + prefix_;
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t begin = line.find(wanted);
    if (begin == std::string::npos) continue;
    pid_t process = 0;
    const char* number = line.data() + begin + wanted.size();
    if (std::from_chars(number, line.data() + line.size(), process).ec != std::errc{}) continue;
    if (process != ::getpid()) found.push_back(process);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace halfstep
