#pragma once
// Detection of the processor's instruction sets.

#include "backend/capabilities.h"

namespace halfstep::backend::cpu {

/// The best instruction set that the processor has and that the operating system enables for this
/// process (AMX needs a permission, which this call requests). Baseline on other than x86-64.
Isa detect_isa();

}  // namespace halfstep::backend::cpu
