#include "cuda_toolkit/fatbin.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace halfstep::testing {
namespace {

/// The container's header, and that of each piece of code in it.
struct Container {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  ///< of the pieces
};
struct Piece {
  std::uint16_t kind;  ///< 1: PTX, 2: machine code
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;
  std::uint8_t unused[12];
  std::uint32_t architecture;  ///< 90
};
constexpr std::uint32_t k_magic = 0xBA55ED50;

template <class T>
T read(const std::vector<char>& bytes, std::size_t at) {
  T value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

std::set<std::string> gpu_code(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
  std::set<std::string> found;
  for (std::size_t at = 0; at + sizeof(Container) <= bytes.size(); at += 8) {
    const auto container = read<Container>(bytes, at);
    if (container.magic != k_magic || container.header_bytes != sizeof(Container)) continue;
    std::size_t piece_at = at + container.header_bytes;
    const std::size_t end = piece_at + container.bytes;
    while (piece_at < end) {
      const auto piece = read<Piece>(bytes, piece_at);
      if (piece.header_bytes == 0) break;
      found.insert((piece.kind == 1 ? "compute_" : "sm_") + std::to_string(piece.architecture));
      piece_at += piece.header_bytes + piece.bytes;
    }
  }
  return found;
}

}  // namespace halfstep::testing
