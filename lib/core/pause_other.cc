#include <thread>

#include "core/pause.h"

namespace halfstep {

void pause() { std::this_thread::yield(); }

}  // namespace halfstep
