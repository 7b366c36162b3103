#pragma once
// The processor's hint for spin loops.

namespace halfstep {

/// Delays the calling thread by some cycles (about 140 on x86 since Skylake) and leaves shared
/// parts of the core to its other hyperthread. Call it between two loads of a word that another
/// thread will change.
void pause();

}  // namespace halfstep
