#pragma once
// The OpenMP functions that a loaded library imports from an OpenMP runtime.

#include <string_view>
#include <vector>

namespace halfstep::backend::cpu::onednn {

/// Names of the undefined symbols of GNU (GOMP_, omp_), LLVM and Intel OpenMP (__kmpc_, kmp_) in
/// the dynamic symbol table of the loaded object that contains `address`. They are valid as long as
/// the object is loaded. Empty where that object has no such table.
std::vector<std::string_view> openmp_imports(const void* address);

}  // namespace halfstep::backend::cpu::onednn
