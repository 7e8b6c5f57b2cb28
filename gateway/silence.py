"""Take an ingest service out while it does not answer: NGINX asks each client's time for it.

NGINX counts failures, and a client that is alone makes too few: it would wait anew each time. So
NGINX tells us of each request that waited in vain. While there is a file `silent_` with an
address, NGINX asks the other services; while there is a file `silent`, none answers, and NGINX asks
none. Nothing is asked, and nothing is loaded again, while all is well.
"""

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

# As long as in probe.conf: a service that is only busy has answered by then.
ANSWER_SECONDS = 1.5
AGAIN_SECONDS = 0.5
_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n"


class Silence:
    """Keeps the files; `services` tells their addresses of now."""

    def __init__(self, run: Path, services: Callable[[], list[str]]) -> None:
        self._run = run
        self._services = services
        self._marks: set[str] = set()
        for left in run.glob("silent*"):
            left.unlink()
        named = run / "silent.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(named))
        named.chmod(0o666)  # nginx's worker is another user

    def watch(self) -> None:
        """Wait until a request has waited in vain; then keep the files while somebody is silent."""
        while True:
            self._socket.recv(1)
            while self._look():
                time.sleep(AGAIN_SECONDS)

    def _look(self) -> bool:
        """Ask all services and mark those that are silent; tell whether to ask again."""
        silent = set(self._services())
        is_any_there = False
        for service, answers in replies(sorted(silent), ANSWER_SECONDS):
            silent.remove(service)
            is_any_there = is_any_there or answers
            # At once: a service that is back is used, while others are still waited for.
            self._keep(self._marks - {f"silent_{service}"} - ({"silent"} if answers else set()))
        none_answers = set() if is_any_there else {"silent"}
        self._keep({f"silent_{service}" for service in silent} | none_answers)
        return bool(self._marks)

    def _keep(self, marks: set[str]) -> None:
        for mark in self._marks - marks:
            (self._run / mark).unlink(missing_ok=True)
        for mark in marks:
            with contextlib.suppress(OSError):  # a full disk: the circuits are there as well
                (self._run / mark).touch()
        self._marks = marks


def replies(services: Iterable[str], seconds: float) -> Iterator[tuple[str, bool]]:
    """Yield each service that says anything in this time, or refuses (False), when it does.

    All are asked at once: after one that takes no connection no time would be left.
    """
    waiting: dict[socket.socket, str] = {}
    until = time.monotonic() + seconds
    with contextlib.ExitStack() as held:
        for service in services:
            host, _, port = service.rpartition(":")
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            connection = held.enter_context(socket.socket(family))
            connection.settimeout(0)
            connection.connect_ex((host.strip("[]"), int(port)))
            waiting[connection] = service
        unasked = set(waiting)
        while waiting and (left := until - time.monotonic()) > 0:
            readable, writable, _ = select.select(waiting, unasked, [], left)
            for connection in writable:
                unasked.remove(connection)
                with contextlib.suppress(OSError):  # refused: then it is readable as well
                    connection.send(_HEALTH)
            for connection in readable:
                unasked.discard(connection)
                answers = False
                with contextlib.suppress(OSError):
                    answers = bool(connection.recv(1))
                yield waiting.pop(connection), answers
