#pragma once
// The processes of the ranks of a run, and detection of those that have ended.

#include <fmt/format.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/mpi_library.h"

namespace halfstep::comm {

/// The process of a rank.
struct Peer {
  std::string host;
  pid_t process = 0;
  bool visible = false;       ///< whether kill(process, 0) tells that it is alive
  std::int64_t started = -1;  ///< operations that it has announced as started
  std::int64_t message = -1;  ///< receive buffer of the next announcement
  Mpi::Request arrival;
};

/// "rank 2 (node7, process 4711)"
inline std::string names_of(const std::vector<int>& ranks, const std::vector<Peer>& peers) {
  std::string all;
  for (const int r : ranks) {
    const Peer& peer = peers[static_cast<std::size_t>(r)];
    if (!all.empty()) all += ", ";
    all += fmt::format("rank {} ({}, process {})", r, peer.host, peer.process);
  }
  return all;
}

/// The ranks of this host whose processes have ended.
inline std::vector<int> ended_of(const std::vector<Peer>& peers) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < peers.size(); ++r) {
    const Peer& peer = peers[r];
    if (peer.visible && ::kill(peer.process, 0) != 0 && errno == ESRCH) {
      ranks.push_back(static_cast<int>(r));
    }
  }
  return ranks;
}

}  // namespace halfstep::comm
