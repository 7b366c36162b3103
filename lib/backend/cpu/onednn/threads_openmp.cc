#include "backend/cpu/onednn/limit.h"

namespace halfstep::backend::cpu::onednn {

// set_thread_count() has set the size of the one pool.
void share_threads() {}

}  // namespace halfstep::backend::cpu::onednn
