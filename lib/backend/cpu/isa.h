#pragma once
// What this machine's processor and operating system offer.

#include "backend/capabilities.h"

namespace halfstep::backend::cpu {

/// The best instruction set that both the processor has and the operating system lets this process
/// use (AMX needs a permission, which is asked for here). Baseline on other than x86-64.
Isa detect_isa();

}  // namespace halfstep::backend::cpu
