#include "core/hash.h"

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep {
namespace {

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 + 17);
  return bytes;
}

TEST_CASE("hash: XXH3-128 of every length class") {
  // python: xxhash.xxh3_128_hexdigest(bytes((i * 131 + 17) % 256 for i in range(n)))
  struct Case {
    std::size_t size;
    std::string_view want;
  };
  constexpr std::array cases{
      Case{0, "99aa06d3014798d86001c324468d497f"},
      Case{1, "f46d8182f5a4994af319fe2bdfcdfebd"},
      Case{3, "d3d72a54a914da93a107bb65b715c89b"},
      Case{8, "c1dcf76c2349c00260bc8bccebcb0734"},
      Case{16, "086a52d17f54b78c9803f5a245db3129"},
      Case{17, "4721ae433384feedc2f249861431c09e"},
      Case{128, "d25fb3a54bc43c6e37906c780c01150d"},
      Case{129, "ce245f502a54b8313dc26c2565608a13"},
      Case{240, "b39403b41f31eeafe1a4f0922856b524"},
      Case{241, "06229596e1de710aed93572e52acac83"},
      Case{1024, "73e0806b4c7d6bbcf0c5763fadfacd25"},
      Case{5000, "a0ea375672435bf039b04cae8a0026e9"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.size);
    const std::vector<std::byte> bytes = pattern(c.size);
    CHECK(Hasher().add(bytes).hex() == c.want);
    // In pieces it is the same.
    Hasher pieces;
    for (std::size_t i = 0; i < bytes.size(); i += 7) {
      pieces.add(std::span(bytes).subspan(i, std::min<std::size_t>(7, bytes.size() - i)));
    }
    CHECK(pieces.hex() == c.want);
  }
  CHECK(Hasher().add("abc").hex() == "06b05ab6733a618578af5f94892f3950");
}

TEST_CASE("hash: looking at the digest does not end the hashing") {
  Hasher hasher;
  hasher.add("ab");
  const std::string before = hasher.hex();
  CHECK(hasher.hex() == before);
  hasher.add("c");
  CHECK(hasher.hex() == Hasher().add("abc").hex());
}

TEST_CASE("hash: SHA-256 of the standard's examples and of lengths around the block") {
  // python: hashlib.sha256(text).hexdigest()
  struct Case {
    std::string text;
    std::string_view want;
  };
  const auto many = [](std::size_t n) { return std::string(n, 'a'); };
  const std::array cases{
      Case{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      Case{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      Case{many(55), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
      Case{many(56), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
      Case{many(63), "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
      Case{many(64), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
      Case{many(65), "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
      Case{many(119), "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
      Case{many(120), "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
      Case{many(1'000'000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text.size());
    CHECK(sha256_hex(std::as_bytes(std::span(c.text))) == c.want);
  }
}

}  // namespace
}  // namespace halfstep
