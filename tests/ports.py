"""Ports that nothing listens on now."""

import socket

BLOCK = 100


def free_port() -> int:
    """Return one free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def free_block() -> int:
    """Return the first of 100 free ports, below those that the kernel hands out by itself."""
    for first in range(20_000 + free_port() % 50 * BLOCK, 32_000, BLOCK):
        if all(_is_free(port) for port in range(first, first + BLOCK)):
            return first
    raise AssertionError("no 100 free ports in a row")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
