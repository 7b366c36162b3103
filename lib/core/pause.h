#pragma once
// The processor's hint for spin loops.

namespace halfstep {

/// Delays the calling thread by some cycles (about 140 on x86 since Skylake) and leaves the shared
/// units of the core to the other hyperthread. For the body of a loop that polls an atomic
/// variable.
void pause();

}  // namespace halfstep
