"""Reads from the gateway; anything but a usable answer raises GatewayUnavailable."""

import http.client
import ssl
import time
import urllib.error
import urllib.request
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple

CLOSED, OPEN, UNKNOWN = "closed", "open", "unknown"
BUSY = "busy"  # an ingest service answers, but all places of the circuit are taken
# No answer that a page asks for is larger. Cached answers must stay within this service's 48 MiB.
MAX_BODY_BYTES = 1024 * 1024
PIECE_BYTES = 64 * 1024
# The time limit holds for each piece: an answer that drips takes at most so many of them.
MOST_TIMEOUTS = 3


class GatewayResponse(NamedTuple):
    """What the gateway answered, and the unix seconds at which that was true.

    `has_more`: it is one page, and another follows.
    """

    status: int
    body: bytes
    etag: str
    taken_at: float
    has_more: bool = False


class GatewayUnavailable(Exception):
    """The gateway gave no usable answer; `circuit` says what is known of the circuit."""

    def __init__(self, circuit: str, detail: str) -> None:
        super().__init__(detail)
        self.circuit = circuit


@lru_cache(maxsize=1)
def authorities() -> ssl.SSLContext:
    """Return what proves servers; urllib would read it anew, a hundred certificates, each time."""
    return ssl.create_default_context()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for an answer: urllib would send the token to wherever it leads."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


class Gateway:
    """Reads from the gateway directly: the environment's HTTP proxies are not used."""

    def __init__(self, url: str, timeout_seconds: float, token: str = "") -> None:
        self._url = url
        self._credentials = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout_seconds = timeout_seconds
        handlers = [urllib.request.ProxyHandler({}), _NoRedirect()]
        if url.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=authorities()))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, cached: GatewayResponse | None = None) -> GatewayResponse:
        """Read one path. A cached response that is still current is returned with a new time."""
        headers = {"If-None-Match": cached.etag} if cached and cached.etag else {}
        return self._get(path, headers | self._credentials, cached)

    def get_as(self, path: str, credentials: dict[str, str]) -> GatewayResponse:
        """Read one path with the headers by which a visitor is known."""
        return self._get(path, credentials, None)

    def text(self, path: str) -> str:
        """Read a short text that is no JSON. Raises GatewayUnavailable."""
        try:
            with self._opener.open(f"{self._url}{path}", timeout=self._timeout_seconds) as response:
                return str(response.read(MAX_BODY_BYTES).decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException) as error:
            raise GatewayUnavailable(UNKNOWN, _silence(error)) from error

    def _get(
        self, path: str, headers: dict[str, str], cached: GatewayResponse | None
    ) -> GatewayResponse:
        request = urllib.request.Request(self._url + path, headers=headers)
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as response:
                body = self._body(response)
                return _checked(response.status, response.headers, body)
        except urllib.error.HTTPError as error:
            with error:
                return _not_200(error, cached)
        except (OSError, http.client.HTTPException) as error:
            raise GatewayUnavailable(UNKNOWN, _silence(error)) from error

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        """Read a body, of one that is too large a byte more than it may have. Raises OSError."""
        ends = time.monotonic() + MOST_TIMEOUTS * self._timeout_seconds
        pieces, room = [], MAX_BODY_BYTES + 1
        while room and (piece := response.read1(min(room, PIECE_BYTES))):
            pieces.append(piece)
            room -= len(piece)
            if time.monotonic() > ends:
                raise TimeoutError("the answer does not end")
        return b"".join(pieces)

    def probe(self, circuit: str) -> tuple[str, str]:
        """Ask the gateway for the state of one of its circuits; return it, and why it is that."""
        try:
            with self._opener.open(
                f"{self._url}/_circuit/{circuit}", timeout=self._timeout_seconds
            ) as response:
                state = response.headers.get("X-Circuit-State")
                if state == BUSY:
                    return BUSY, "all places of this circuit are taken"
                return (CLOSED, "") if state == CLOSED else (UNKNOWN, "the gateway told no state")
        except urllib.error.HTTPError as error:
            with error:
                return _circuit(error), f"the gateway answered {error.code}"
        except (OSError, http.client.HTTPException) as error:
            return UNKNOWN, _silence(error)


def _silence(error: Exception) -> str:
    """Return why there was no answer, without urllib's brackets around it."""
    return f"the gateway did not answer: {getattr(error, 'reason', error)}"


def _not_200(error: urllib.error.HTTPError, cached: GatewayResponse | None) -> GatewayResponse:
    """Return the response for a 304 or a 4xx; any other status raises GatewayUnavailable."""
    if error.code == 304 and cached:
        return cached._replace(taken_at=_date(error.headers))
    if 400 <= error.code < 500 and error.code != 429:
        return _checked(error.code, error.headers, error.read(MAX_BODY_BYTES + 1))
    raise GatewayUnavailable(_circuit(error), f"the gateway answered {error.code}")


def _circuit(error: urllib.error.HTTPError) -> str:
    """Return what a failure says of the circuit: open or busy; else nothing is known."""
    state = error.headers.get("X-Circuit-State")
    return state if error.code == 503 and state in (OPEN, BUSY) else UNKNOWN


def _checked(status: int, headers: Message, body: bytes) -> GatewayResponse:
    # The JSON is not parsed: as Python objects, a large answer would take ten times its size.
    if not (body.startswith((b"{", b"[")) and body.rstrip().endswith((b"}", b"]"))):
        raise GatewayUnavailable(UNKNOWN, "the gateway's answer is not JSON")
    if len(body) > MAX_BODY_BYTES:
        raise GatewayUnavailable(UNKNOWN, "the gateway answered more than a page asks for")
    has_more = 'rel="next"' in headers.get("Link", "")
    return GatewayResponse(status, body, headers.get("ETag", ""), _date(headers), has_more)


def _date(headers: Message) -> float:
    """Return the response's `Date` in unix seconds; without a readable one, the time now."""
    try:
        return parsedate_to_datetime(headers.get("Date", "")).timestamp()
    except ValueError:
        return time.time()
