"""Requests that are timed, verified and recorded, in greenlets of gevent."""

import time
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import gevent.ssl
from geventhttpclient import HTTPClient
from geventhttpclient.response import HTTPParseError

from loadtests import targets
from loadtests.figures import HTTP, VERIFICATION, Row

CONNECT_SECONDS = 10.0
TIMEOUT_SECONDS = 60.0
MOST_AT_ONCE = 10_000  # never the client's own limit
KEEP_ALIVE: Mapping[str, str] = {}
CLOSE = {"Connection": "close"}  # a connection for each request, as JMeter's threads have
GZIP = {"Accept-Encoding": "gzip"}


class WrongResponse(Exception):
    """A good status with content that is not right."""


class Response(NamedTuple):
    """What came back; status 0 when nothing did, and then `body` says why."""

    status: int
    body: bytes
    ms: float  # from sending to the last byte
    headers: Mapping[str, str] = {}  # by name in small letters


Verify = Callable[[Response], object]


class Api:
    """Sends requests to one server, and keeps a row of each."""

    def __init__(self, url: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._pool = HTTPClient.from_url(
            url,
            concurrency=MOST_AT_ONCE,
            connection_timeout=CONNECT_SECONDS,
            network_timeout=timeout_seconds,
            insecure=True,  # the certificate is our own
            ssl_context_factory=gevent.ssl._create_unverified_context,
            block_size=65536,
        )
        self._always = targets.authorization()
        self.plan = self.step = ""
        self.began = time.monotonic()
        self.rows: list[Row] = []

    def close(self) -> None:
        """Close the connections that are kept."""
        self._pool.close()

    def begin(self, plan: str, step: str) -> float:
        """Record what follows under this step; return when it begins (monotonic seconds)."""
        self.plan, self.step, self.began = plan, step, time.monotonic()
        return self.began

    def record(self, row: Row, method: str) -> None:  # noqa: ARG002 - for Locust's
        """Keep a row."""
        self.rows.append(row)

    def checkpoint(self) -> Callable[[], None]:
        """Return what forgets all rows recorded since."""
        first = len(self.rows)

        def forget() -> None:
            del self.rows[first:]

        return forget

    def send(
        self, path: str, body: bytes | None = None, headers: Mapping[str, str] = CLOSE
    ) -> Response:
        """Send without recording: GET, or POST of a body, JSON unless the headers say otherwise."""
        if body is not None:
            headers = {"Content-Type": "application/json", **headers}
        sent = time.monotonic()
        try:
            response = self._pool.request(_method(body), path, body, {**self._always, **headers})
            text = bytes(response.read())
        except (OSError, HTTPParseError) as error:
            why = f"{type(error).__name__}: {error}".encode()
            return Response(0, why, (time.monotonic() - sent) * 1000)
        ms = (time.monotonic() - sent) * 1000
        if response.get("content-encoding") == "gzip":
            text = zlib.decompress(text, 31)
        named = {name.lower(): value for name, value in response.items()}
        return Response(response.status_code, text, ms, named)

    def measure(
        self,
        name: str,
        path: str,
        verify: Verify,
        body: bytes | None = None,
        headers: Mapping[str, str] = CLOSE,
        *,
        due: float | None = None,
        good: tuple[int, ...] = (200,),
    ) -> Response:
        """Send, verify the response, and record both; `due` is when it should have been sent."""
        sent = time.monotonic()
        response = self.send(path, body, headers)
        error, detail = "", ""
        if response.status not in good:
            error, detail = HTTP, f"{response.status} {response.body[:120]!r}"
        else:
            try:
                verify(response)
            except WrongResponse as wrong:
                error, detail = VERIFICATION, str(wrong)
        times = ((sent if due is None else due) - self.began, sent - self.began, response.ms)
        size = len(response.body)
        row = Row(self.plan, self.step, name, *times, response.status, size, error, detail)
        self.record(row, _method(body))
        return response


def _method(body: bytes | None) -> str:
    return "GET" if body is None else "POST"
