#include "core/pause.h"

namespace halfstep {

// `yield` does nothing on most cores; a barrier for instructions takes some ten cycles.
void pause() { asm volatile("isb" ::: "memory"); }

}  // namespace halfstep
