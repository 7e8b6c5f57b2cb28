"""Free ports, below those that the kernel gives to outgoing connections."""

import atexit
import contextlib
import errno
import itertools
import socket
from collections import deque
from collections.abc import Iterator

import psutil

BLOCK = 100
OWN_BLOCKS = 10  # one process takes at most so many: there are 120 for all of them
_FIRST, _END = 20_000, 32_000
_claims: list[socket.socket] = []
_blocks: deque[int] = deque()  # the one handed out last is at the end


def _give_back() -> None:
    for claim in _claims:
        claim.close()


atexit.register(_give_back)


def free_port() -> int:
    """Return a free port that no other process that uses this module gets."""
    return next(_ports)


def free_block() -> int:
    """Return the first of 100 free ports in a row, none of which another process gets."""
    if len(_blocks) < OWN_BLOCKS:
        _blocks.append(_claimed())
        return _blocks[-1]
    for _ in range(OWN_BLOCKS):
        _blocks.rotate(-1)
        if all(map(is_free, _range(_blocks[-1]))):
            return _blocks[-1]
    raise OSError(errno.EADDRINUSE, f"no {BLOCK} free ports in a row")


def is_free(port: int) -> bool:
    """Tell whether a server could listen on 127.0.0.1:port. PermissionError when only root may."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def listener(port: int) -> str:
    """Return the program that listens on a port, as far as this user may see."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN
            if listens and connection.pid and tuple(connection.laddr)[1:] == (port,):
                return f"{psutil.Process(connection.pid).name()}, pid {connection.pid}"
    return "another program"


def _range(first: int) -> range:
    return range(first, first + BLOCK)


def _claimed() -> int:
    """Claim a block of ports for as long as this process lives; return its first."""
    for first in range(_FIRST, _END, BLOCK):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0waymark-test-ports-{first}")  # a name that only one socket can have
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        if all(map(is_free, _range(first))):
            return first
    raise OSError(errno.EADDRINUSE, "other processes have claimed all the ports")


def _each() -> Iterator[int]:
    yield from filter(is_free, itertools.cycle(_range(_claimed())))


_ports = _each()
