#!/usr/bin/env python3
"""Runs a command as on a processor without AMX, on x86-64 Linux, as root.

    scripts/deny_amx.py COMMAND [ARGUMENT...]

Linux grants AMX's tile registers per process, by arch_prctl(ARCH_REQ_XCOMP_PERM). A seccomp filter refuses that
request with EINVAL, as a kernel older than 5.16 does, for the command and all of its children; halfstep and
oneDNN then have no instruction set above AVX512-BF16; halfstep, on Intel's processors with AMX, none above
AVX-512. Needs root (CAP_SYS_ADMIN), so that sudo still works
for the command.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

SYS_ARCH_PRCTL = 158
ARCH_REQ_XCOMP_PERM = 0x1023
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000
NUMBER, FIRST_ARGUMENT = 0, 16  # offsets in struct seccomp_data


class Program(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def deny() -> None:
    """Installs the filter in this process. Errors: OSError of prctl."""
    instructions = [
        (LOAD_WORD, 0, 0, NUMBER),
        (JUMP_IF_EQUAL, 0, 3, SYS_ARCH_PRCTL),
        (LOAD_WORD, 0, 0, FIRST_ARGUMENT),
        (JUMP_IF_EQUAL, 0, 1, ARCH_REQ_XCOMP_PERM),
        (RETURN, 0, 0, RET_ERRNO | errno.EINVAL),
        (RETURN, 0, 0, RET_ALLOW),
    ]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(instructions), code)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if platform.machine() != "x86_64":  # the number of arch_prctl is another call's elsewhere
        sys.exit(f"deny_amx.py: {platform.machine()} has no AMX to deny")
    try:
        deny()
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as error:
        sys.exit(f"deny_amx.py: {error}")
