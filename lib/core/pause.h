#pragma once
// What a thread does between two looks at a word that another thread will change.

namespace halfstep {

/// Leaves the processor's shared parts to others for some cycles.
void pause();

}  // namespace halfstep
