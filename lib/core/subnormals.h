#pragma once
// Flushing of subnormal float32 values (FTZ and DAZ): x86 processors add and multiply them in
// microcode, at about 150 cycles per instruction.

#include <cstdint>

namespace halfstep {

/// While it lives, the calling thread's float arithmetic takes subnormal operands as zeros and
/// returns zero in place of subnormal results. Without effect on processors other than x86 and
/// ARM.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  std::uint64_t before_;  ///< the control register of floating-point arithmetic
};

}  // namespace halfstep
