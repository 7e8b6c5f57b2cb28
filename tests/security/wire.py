"""Bytes on a connection, as they are, and everything that comes back."""

import contextlib
import socket

from tests.security.case import statuses

PROBE = b"GET /probe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
# Longer than any target waits for the rest of a request: then it answers, or closes.
SILENT_SECONDS = 30.0
# Where a connection may stay open, what else would come has come by then; that nothing was stored
# is looked at in the end.
OPEN_SECONDS = 0.3


def exchange(
    port: int,
    sent: bytes,
    *,
    open_after: tuple[str, ...] = (),
    silent_seconds: float = SILENT_SECONDS,
) -> tuple[str, bytes]:
    """Return the statuses and all bytes that come back, until the connection is closed.

    `open_after` are statuses after which it may stay open.
    """
    answers = b""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=silent_seconds) as connection,
        contextlib.suppress(ConnectionError),  # refused while we still send
    ):
        connection.sendall(sent + PROBE)
        while True:
            is_open = statuses(answers) in open_after
            connection.settimeout(OPEN_SECONDS if is_open else silent_seconds)
            try:
                piece = connection.recv(65536)
            except TimeoutError:
                return f"{statuses(answers)} ...", answers
            if not piece:
                break
            answers += piece
    return statuses(answers), answers
