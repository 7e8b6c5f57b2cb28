#!/usr/bin/env python3
"""Become the program named in PROGRAM, without the machine's network interfaces and its priority.

Chromium ends requests with ERR_NETWORK_CHANGED whenever there is a new address, as of any container
that starts; the page would load itself again, and with it go what a test has opened. Where it may
(as root), it gives itself a nice value of -8: what is tested beside it would get the rest.
"""

import ctypes
import errno
import os
import socket
import sys

# From seccomp.h of libseccomp, which Debian's apt needs.
ALLOW, FAIL = 0x7FFF0000, 0x00050000
EQUAL = 4


class Comparison(ctypes.Structure):
    """What an argument of a system call has to be; libseccomp's scmp_arg_cmp."""

    _fields_ = (
        ("number", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("unused", ctypes.c_uint64),
    )


def main() -> None:
    """Forbid sockets of netlink, and another priority; OSError where that cannot be done."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(ALLOW)))
    failed = seccomp.seccomp_rule_add_array(
        rules,
        ctypes.c_uint32(FAIL | errno.EAFNOSUPPORT),
        seccomp.seccomp_syscall_resolve_name(b"socket"),
        1,
        ctypes.byref(Comparison(0, EQUAL, socket.AF_NETLINK, 0)),
    )
    failed = failed or seccomp.seccomp_rule_add_array(
        rules,
        ctypes.c_uint32(FAIL | errno.EACCES),
        seccomp.seccomp_syscall_resolve_name(b"setpriority"),
        0,
        None,
    )
    failed = failed or seccomp.seccomp_load(rules)
    if failed:
        raise OSError(-failed, os.strerror(-failed))
    os.execv(os.environ["PROGRAM"], [os.environ["PROGRAM"], *sys.argv[1:]])


if __name__ == "__main__":
    main()
