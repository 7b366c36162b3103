#include "core/pause.h"

namespace halfstep {

// YIELD is a no-op on most cores; ISB takes about as long as PAUSE on x86.
void pause() { asm volatile("isb" ::: "memory"); }

}  // namespace halfstep
