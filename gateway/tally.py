"""What the gateway counts of the requests that it answered, by their log, for Prometheus.

NGINX itself counts none by address. Its log is read as it grows, and what was counted stands in a
file that NGINX gives to the monitoring service (nginx/health.conf).
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from common import metrics
from common.metrics import Page, Requests
from common.routes import KINDS, OTHER, ROUTES
from gateway.request_log import NAME, PIECE_BYTES

FILE = "metrics.txt"  # as in nginx/health.conf
PAGE = "page"
OPEN, BUSY, CLIENT = "open", "busy", "client"
_KINDS = {route.logged_as: route.kind for route in ROUTES}
# As nginx/log.conf writes it. `unix:` is ourselves.
_LINE = re.compile(
    rb'"client":"(?!unix:)[^"]*",[^\n]*?"path":"([^"]*)","status":"([2-5]\d\d)",'
    rb'[^\n]*?"circuit":"([^"]*)",[^\n]*?"seconds":"([\d.]+)"'
)


class Tally:
    """Reads the log of requests from its end on, and keeps the file FILE in the folder `run`.

    `expires_at` tells when the certificate does, in unix seconds.
    """

    def __init__(self, run: Path, log_folder: Path, expires_at: Callable[[], float | None]) -> None:
        self._file = run / FILE
        self._log = log_folder / NAME
        self._expires_at = expires_at
        self._requests = Requests([*KINDS, PAGE])
        self._refused = dict.fromkeys((OPEN, BUSY, CLIENT), 0)
        self._open: BinaryIO | None = None
        self._rest = b""  # a line whose end is not there yet
        self._read_on(at_end=True)

    def look(self) -> None:
        """Count what came since, and write it down. Raises OSError."""
        self._read_on(at_end=False)
        page = Page()
        self._requests.write(page, metrics.GATEWAY_REQUESTS, metrics.GATEWAY_SECONDS)
        for reason, count in self._refused.items():
            page.add(metrics.REFUSED, count, reason)
        page.add(metrics.CERTIFICATE, self._expires_at())
        new = self._file.with_name(f"{FILE}.new")
        new.write_text(page.text(), "utf-8")
        new.chmod(0o644)  # nginx's worker is another user
        new.replace(self._file)

    def _read_on(self, *, at_end: bool) -> None:
        """Read what is new; of a log that was rotated the rest, which nobody writes to any more."""
        self._read()
        if not self._log.exists() or (self._open and _is_same(self._open, self._log)):
            return
        if self._open:
            self._open.close()
        self._open, self._rest = self._log.open("rb"), b""
        if at_end:  # what was there before was counted by who is gone
            self._open.seek(0, os.SEEK_END)
        self._read()

    def _read(self) -> None:
        while self._open and (piece := self._open.read(PIECE_BYTES)):
            lines, end, rest = (self._rest + piece).rpartition(b"\n")
            self._rest = rest
            if end:
                self._count(lines)

    def _count(self, lines: bytes) -> None:
        for path, status, circuit, seconds in _LINE.findall(lines):
            self._requests.observe(_kind(path.decode()), int(status), float(seconds))
            if status == b"429":
                self._refused[CLIENT] += 1
            elif status == b"503" and (reason := circuit.decode()) in self._refused:
                self._refused[reason] += 1


def _kind(path: str) -> str:
    if path == "/" or path.startswith("/monitoring"):
        return PAGE
    return _KINDS.get(path, OTHER)


def _is_same(file: BinaryIO, path: Path) -> bool:
    return os.path.samestat(os.fstat(file.fileno()), path.stat())
