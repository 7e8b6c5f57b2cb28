"""Take all ingest services out while none of them answers: NGINX asks each client's time for it.

NGINX counts failures, and a client that is alone makes too few: he would wait anew each time. So it
tells us of each request that waited in vain, and answers at once while the file `silent` is there.
Nothing is asked, and nothing is loaded again, while all is well.
"""

import contextlib
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path

# As long as in probe.conf: who is only busy has answered by then.
ANSWER_SECONDS = 1.5
AGAIN_SECONDS = 0.5
_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n"


class Silence:
    """Keeps the file; `services` tells their addresses of now."""

    def __init__(self, run: Path, services: Callable[[], list[str]]) -> None:
        self._mark = run / "silent"
        self._services = services
        named = run / "silent.sock"
        for left in (self._mark, named):
            left.unlink(missing_ok=True)
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._told.bind(str(named))
        named.chmod(0o666)  # nginx's worker is another user

    def watch(self) -> None:
        """Wait until a request has waited in vain; then keep the file while nobody answers."""
        while True:
            self._told.recv(1)
            while not answer(self._services(), ANSWER_SECONDS):
                with contextlib.suppress(OSError):  # a full disk: the circuits are there as well
                    self._mark.touch()
                time.sleep(AGAIN_SECONDS)
            self._mark.unlink(missing_ok=True)


def answer(services: list[str], seconds: float) -> bool:
    """Tell whether any of these services says anything in this time."""
    until = time.monotonic() + seconds
    with contextlib.ExitStack() as held:
        asked = []
        for service in services:
            host, _, port = service.rpartition(":")
            with contextlib.suppress(OSError):
                at = host.strip("[]"), int(port)
                connection = held.enter_context(socket.create_connection(at, seconds))
                connection.sendall(_HEALTH)
                asked.append(connection)
        while asked and (left := until - time.monotonic()) > 0:
            for connection in select.select(asked, [], [], left)[0]:
                with contextlib.suppress(OSError):
                    if connection.recv(1):
                        return True
                asked.remove(connection)
    return False
