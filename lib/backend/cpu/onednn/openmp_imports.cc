#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "backend/cpu/onednn/onednn.h"

namespace halfstep::backend::cpu::onednn {
namespace {

using Word = std::uint32_t;

/// Addresses of an object's dynamic section.
struct Dynamic {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const Word* gnu_hash = nullptr;
  const Word* hash = nullptr;
};

Dynamic read_dynamic(const link_map& object) {
  Dynamic dynamic;
  for (const ElfW(Dyn)* entry = object.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    // glibc has added the load address if the section is writable; other loaders have not.
    const ElfW(Addr) address =
        entry->d_un.d_ptr < object.l_addr ? entry->d_un.d_ptr + object.l_addr : entry->d_un.d_ptr;
    // NOLINTBEGIN(performance-no-int-to-ptr): the dynamic section holds addresses as integers.
    if (entry->d_tag == DT_SYMTAB) dynamic.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) dynamic.names = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH) dynamic.gnu_hash = reinterpret_cast<const Word*>(address);
    if (entry->d_tag == DT_HASH) dynamic.hash = reinterpret_cast<const Word*>(address);
    // NOLINTEND(performance-no-int-to-ptr)
  }
  return dynamic;
}

/// The number of symbols up to the last undefined one.
Word symbol_count(const Dynamic& dynamic) {
  // DT_GNU_HASH: buckets, index of the first hashed symbol, ... Undefined symbols precede it.
  if (dynamic.gnu_hash != nullptr) return dynamic.gnu_hash[1];
  // DT_HASH: buckets, all symbols, ...
  return dynamic.hash != nullptr ? dynamic.hash[1] : 0;
}

bool is_openmp(std::string_view name) {
  constexpr std::array<std::string_view, 4> k_prefixes{"GOMP_", "omp_", "__kmpc_", "kmp_"};
  return std::any_of(k_prefixes.begin(), k_prefixes.end(), [&](std::string_view prefix) {
    return name.starts_with(prefix);
  });
}

}  // namespace

std::vector<std::string_view> openmp_imports(const void* address) {
  std::vector<std::string_view> imports;
  Dl_info info;
  void* map = nullptr;
  if (dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0 || map == nullptr) return imports;
  const Dynamic dynamic = read_dynamic(*static_cast<const link_map*>(map));
  if (dynamic.symbols == nullptr || dynamic.names == nullptr) return imports;
  for (Word i = 0; i < symbol_count(dynamic); ++i) {
    const ElfW(Sym)& symbol = dynamic.symbols[i];
    const std::string_view name = dynamic.names + symbol.st_name;
    if (symbol.st_shndx == SHN_UNDEF && is_openmp(name)) imports.push_back(name);
  }
  return imports;
}

}  // namespace halfstep::backend::cpu::onednn
