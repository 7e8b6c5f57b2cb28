"""What the gateway answered, kept for a short while: one read serves every open page."""

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import NamedTuple

CLOSED, OPEN, UNKNOWN = "closed", "open", "unknown"
MAX_WAIT_SECONDS = 1.0
# An answer larger than this is none that a page asks for; together they stay within our 48 MiB.
MAX_ANSWER_BYTES = 1024 * 1024
MAX_KEPT_BYTES = 3 * 1024 * 1024
MAX_KEPT_ANSWERS = 100


class Answer(NamedTuple):
    """What the gateway said, and the unix seconds at which that was true."""

    status: int
    body: bytes
    etag: str
    taken_at: float


class Kept(NamedTuple):
    """The newest good answer, None before the first one.

    `circuit` tells how the newest read went: `closed` (this is it), `open` (no ingest service
    can answer) or `unknown` (the gateway did not answer, or not usefully).
    """

    circuit: str = UNKNOWN
    answer: Answer | None = None
    detail: str = "nothing was read yet"


class GatewayUnavailable(Exception):
    """The gateway gave no usable answer; `circuit` says what is known of it."""

    def __init__(self, circuit: str, detail: str) -> None:
        super().__init__(detail)
        self.circuit = circuit


class Gateway:
    """Reads from the gateway, directly: no proxy of the environment stands between."""

    def __init__(self, url: str, timeout_seconds: float) -> None:
        self._url = url
        self._timeout_seconds = timeout_seconds
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path: str, known: Answer | None = None) -> Answer:
        """Read one address; a known answer that still holds is returned with its new time."""
        headers = {"If-None-Match": known.etag} if known and known.etag else {}
        request = urllib.request.Request(self._url + path, headers=headers)
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as answer:
                return _answer(answer.status, answer.headers, answer.read(MAX_ANSWER_BYTES + 1))
        except urllib.error.HTTPError as error:
            with error:
                return _not_200(error, known)
        except (OSError, http.client.HTTPException) as error:
            raise GatewayUnavailable(UNKNOWN, f"the gateway did not answer: {error}") from error


def _not_200(error: urllib.error.HTTPError, known: Answer | None) -> Answer:
    """Return what a status 304 or 4xx says; anything else is no answer."""
    if error.code == 304 and known:
        return known._replace(taken_at=_date(error.headers))
    if 400 <= error.code < 500 and error.code != 429:
        return _answer(error.code, error.headers, error.read(MAX_ANSWER_BYTES + 1))
    circuit = OPEN if error.headers.get("X-Circuit-State") == OPEN else UNKNOWN
    raise GatewayUnavailable(circuit, f"the gateway answered {error.code}")


def _answer(status: int, headers: Message, body: bytes) -> Answer:
    # Not parsed: the objects of a large answer would take ten times its size.
    if not (body.startswith((b"{", b"[")) and body.rstrip().endswith((b"}", b"]"))):
        raise GatewayUnavailable(UNKNOWN, "the gateway's answer is not JSON")
    if len(body) > MAX_ANSWER_BYTES:
        raise GatewayUnavailable(UNKNOWN, "the gateway answered more than a page asks for")
    return Answer(status, body, headers.get("ETag", ""), _date(headers))


def _date(headers: Message) -> float:
    """Return when it was true, which the gateway's answers always say."""
    try:
        return parsedate_to_datetime(headers.get("Date", "")).timestamp()
    except ValueError:
        return time.time()


class _Entry:
    def __init__(self) -> None:
        self.reading = threading.Lock()
        self.kept = Kept()
        self.tried_at = float("-inf")


class Keeper:
    """Keeps the newest answer of each address; `get` returns one or raises GatewayUnavailable."""

    def __init__(
        self,
        get: Callable[[str, Answer | None], Answer],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._get = get
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._changing = threading.Lock()

    def read(self, path: str, lifetime_seconds: float) -> Kept:
        """Return what is known of an address; one caller reads, the others wait a little for it.

        Waiting as long as the reader would let a few pages take every thread of the service.
        """
        entry = self._entry(path)
        if not entry.reading.acquire(timeout=MAX_WAIT_SECONDS):
            return entry.kept
        try:
            age = self._clock() - entry.tried_at
            if not 0 <= age < lifetime_seconds:
                entry.kept = self._read(path, entry.kept)
                entry.tried_at = self._clock()
            return entry.kept
        finally:
            entry.reading.release()

    def _read(self, path: str, before: Kept) -> Kept:
        try:
            return Kept(CLOSED, self._get(path, before.answer), "")
        except GatewayUnavailable as error:
            return before._replace(circuit=error.circuit, detail=str(error))

    def _entry(self, path: str) -> _Entry:
        with self._changing:
            entry = self._entries.setdefault(path, _Entry())
            self._entries.move_to_end(path)
            while len(self._entries) > 1 and self._too_much():
                self._entries.popitem(last=False)
            return entry

    def _too_much(self) -> bool:
        answers = [entry.kept.answer for entry in self._entries.values()]
        kept_bytes = sum(len(answer.body) for answer in answers if answer)
        return kept_bytes > MAX_KEPT_BYTES or len(answers) > MAX_KEPT_ANSWERS
