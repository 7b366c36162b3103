#include "core/pause.h"

namespace halfstep {

void pause() { __builtin_ia32_pause(); }

}  // namespace halfstep
