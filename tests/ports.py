"""Ports that nobody else uses: below those that the kernel hands out to clients by itself."""

import itertools
import socket
from collections import deque
from collections.abc import Iterator

BLOCK = 100
OWN_BLOCKS = 10  # a process of tests takes so many at most: there are 120 for all of them
_FIRST, _END = 20_000, 32_000
_claims: list[socket.socket] = []
_blocks: deque[int] = deque()  # the one handed out last is at the end


def free_port() -> int:
    """Return one free port."""
    return next(_ports)


def free_block() -> int:
    """Return the first of 100 free ports in a row."""
    if len(_blocks) < OWN_BLOCKS:
        _blocks.append(_claimed())
        return _blocks[-1]
    for _ in range(OWN_BLOCKS):
        _blocks.rotate(-1)
        if all(map(_is_free, _range(_blocks[-1]))):
            return _blocks[-1]
    raise AssertionError("no 100 free ports in a row")


def _range(first: int) -> range:
    return range(first, first + BLOCK)


def _claimed() -> int:
    """Keep the other processes of tests off a block as long as this one lives; return it."""
    for first in range(_FIRST, _END, BLOCK):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0waymark-test-ports-{first}")  # a name that only one socket can have
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        if all(map(_is_free, _range(first))):
            return first
    raise AssertionError("other tests have taken all the ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _each() -> Iterator[int]:
    yield from filter(_is_free, itertools.cycle(_range(_claimed())))


_ports = _each()
