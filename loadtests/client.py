"""Requests that are timed, verified and noted; for gevent, in the process of the load generator."""

import time
import zlib
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlencode

from geventhttpclient import HTTPClient
from geventhttpclient.response import HTTPParseError
from locust.contrib.fasthttp import insecure_ssl_context_factory
from locust.env import Environment

from loadtests.figures import HTTP, VERIFICATION, Row

CONNECT_SECONDS = 10.0
MOST_AT_ONCE = 10_000  # never the client's own limit


class WrongAnswer(Exception):
    """A good status with content that is not right."""


class Answer(NamedTuple):
    """What came back; status 0 when nothing did, and then `body` says why."""

    status: int
    body: bytes


Verify = Callable[[Answer], None]


class Api:
    """Asks one server, and keeps a row of each request."""

    def __init__(self, url: str, environment: Environment, timeout_seconds: float) -> None:
        self._environment = environment
        self.timeout_seconds = timeout_seconds
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
        """Note what follows under this step; return when it begins (monotonic seconds)."""
        self.plan, self.step, self.began = plan, step, time.monotonic()
        return self.began

    def call(
        self, path: str, body: bytes | None = None, *, gzip: bool = False, keep: bool = False
    ) -> Answer:
        """Ask without noting: GET, or POST of a JSON body.

        Each request has a connection of its own, as JMeter's threads have; unless `keep`.
        """
        headers = {} if keep else {"Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if gzip:
            headers["Accept-Encoding"] = "gzip"
        try:
            response = self._pool.request("GET" if body is None else "POST", path, body, headers)
            text = bytes(response.read())
        except (OSError, HTTPParseError) as error:
            return Answer(0, f"{type(error).__name__}: {error}".encode())
        if response.get("content-encoding") == "gzip":
            text = zlib.decompress(text, wbits=31)
        return Answer(response.status_code, text)

    def ask(
        self,
        name: str,
        path: str,
        verify: Verify,
        body: bytes | None = None,
        *,
        due: float | None = None,
        good: tuple[int, ...] = (200,),
        gzip: bool = False,
        keep: bool = False,
    ) -> Answer:
        """Ask, verify what came, and note it; `due` is when it should have been sent."""
        sent = time.monotonic()
        answer = self.call(path, body, gzip=gzip, keep=keep)
        ms = (time.monotonic() - sent) * 1000
        error, detail = "", ""
        if answer.status not in good:
            error, detail = HTTP, f"{answer.status} {answer.body[:120]!r}"
        else:
            try:
                verify(answer)
            except WrongAnswer as wrong:
                error, detail = VERIFICATION, str(wrong)
        late = sent if due is None else due
        times = (late - self.began, sent - self.began, ms)
        size = len(answer.body)
        row = Row(self.plan, self.step, name, *times, answer.status, size, error, detail)
        self.rows.append(row)
        self._environment.events.request.fire(  # type: ignore[no-untyped-call]
            request_type="GET" if body is None else "POST",
            name=name,
            response_time=ms,
            response_length=size,
            exception=WrongAnswer(f"{error}: {detail}") if error else None,
            context={},
        )
        return answer


def query(path: str, **parameters: object) -> str:
    """Return a path with its parameters."""
    return f"{path}?{urlencode(parameters)}"
