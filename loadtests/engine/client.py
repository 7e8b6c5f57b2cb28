"""Requests that are timed, verified and recorded; for gevent, in the load generator's process."""

import copy
import time
import zlib
from collections.abc import Callable
from typing import NamedTuple

from geventhttpclient import HTTPClient
from geventhttpclient.response import HTTPParseError
from locust.contrib.fasthttp import insecure_ssl_context_factory
from locust.env import Environment

from loadtests.figures import HTTP, VERIFICATION, Row

CONNECT_SECONDS = 10.0
MOST_AT_ONCE = 10_000  # never the client's own limit


class WrongResponse(Exception):
    """A good status with content that is not right."""


class Response(NamedTuple):
    """What came back; status 0 when nothing did, and then `body` says why."""

    status: int
    body: bytes


Verify = Callable[[Response], object]


class Api:
    """Sends requests to one server, and keeps a row of each."""

    def __init__(self, url: str, environment: Environment, timeout_seconds: float) -> None:
        self._environment = environment
        self._pool = HTTPClient.from_url(
            url,
            concurrency=MOST_AT_ONCE,
            connection_timeout=CONNECT_SECONDS,
            network_timeout=timeout_seconds,
            insecure=True,  # the certificate is our own
            ssl_context_factory=insecure_ssl_context_factory,
            block_size=65536,
        )
        self.plan = self.step = ""
        self.began = time.monotonic()
        self.rows: list[Row] = []

    def begin(self, plan: str, step: str) -> float:
        """Record what follows under this step; return when it begins (monotonic seconds)."""
        self.plan, self.step, self.began = plan, step, time.monotonic()
        return self.began

    def checkpoint(self) -> Callable[[], None]:
        """Return what forgets all requests recorded since: our rows and Locust's statistics."""
        first, stats = len(self.rows), self._environment.stats
        before = copy.deepcopy((stats.entries, stats.total, stats.errors), {id(stats): stats})

        def forget() -> None:
            del self.rows[first:]
            stats.entries, stats.total, stats.errors = before

        return forget

    def send(
        self, path: str, body: bytes | None = None, *, gzip: bool = False, keep_alive: bool = False
    ) -> Response:
        """Send without recording: GET, or POST of a JSON body.

        Each request has a connection of its own, as JMeter's threads have; unless `keep_alive`.
        """
        headers = {} if keep_alive else {"Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if gzip:
            headers["Accept-Encoding"] = "gzip"
        try:
            response = self._pool.request("GET" if body is None else "POST", path, body, headers)
            text = bytes(response.read())
        except (OSError, HTTPParseError) as error:
            return Response(0, f"{type(error).__name__}: {error}".encode())
        if response.get("content-encoding") == "gzip":
            text = zlib.decompress(text, wbits=31)
        return Response(response.status_code, text)

    def measure(
        self,
        name: str,
        path: str,
        verify: Verify,
        body: bytes | None = None,
        *,
        due: float | None = None,
        good: tuple[int, ...] = (200,),
        gzip: bool = False,
        keep_alive: bool = False,
    ) -> Response:
        """Send, verify the response, and record both; `due` is when it should have been sent."""
        sent = time.monotonic()
        response = self.send(path, body, gzip=gzip, keep_alive=keep_alive)
        ms = (time.monotonic() - sent) * 1000
        error, detail = "", ""
        if response.status not in good:
            error, detail = HTTP, f"{response.status} {response.body[:120]!r}"
        else:
            try:
                verify(response)
            except WrongResponse as wrong:
                error, detail = VERIFICATION, str(wrong)
        times = ((sent if due is None else due) - self.began, sent - self.began, ms)
        size = len(response.body)
        row = Row(self.plan, self.step, name, *times, response.status, size, error, detail)
        self.rows.append(row)
        self._environment.events.request.fire(  # type: ignore[no-untyped-call]
            request_type="GET" if body is None else "POST",
            name=name,
            response_time=ms,
            response_length=size,
            exception=WrongResponse(f"{error}: {detail}") if error else None,
            context={},
        )
        return response
