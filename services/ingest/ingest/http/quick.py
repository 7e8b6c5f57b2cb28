"""The legacy detection and history, answered in the event loop.

Only what is plainly good is answered here; for anything else, `None` hands the request to the
Flask application, which owns every error and every other way to ask.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from ingest.context import Store
from ingest.errors import ParameterError, StoreUnavailable
from ingest.histories.cache import READERS
from ingest.http import request_identity as receipt
from ingest.http import responses
from ingest.http.responses import Reply
from ingest.legacy import legacy
from ingest.recording.recorder import GROUP, Outcome
from ingest.rules import parameters as parsing
from ingest.rules.parameters import StaffId
from ingest.storage.detections import Document
from ingest.storage.directory import Place
from ingest.storage.latest import Version

log = logging.getLogger(__name__)

# When so many ask about together, a moment more makes one group of them, not two.
MANY, GATHER_SECONDS = 8, 0.002
# A detection that MongoDB refuses is Flask's to explain.
ADDED: dict[Outcome, Reply] = {
    outcome: responses.added(outcome).for_any_origin()
    for outcome in Outcome
    if outcome not in (Outcome.REJECTED, Outcome.UNAVAILABLE)
}

Asked = TypeVar("Asked")
Told = TypeVar("Told")


class Request(NamedTuple):
    """A request with its whole body."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]  # names in lower case; of repeated ones the last
    body: bytes

    def header(self, name: bytes) -> str:
        """Return a header's value, empty when there is none."""
        return self.headers.get(name, b"").decode("latin-1")


class Together(Generic[Asked, Told]):
    """Does in one go, in a thread, what several requests ask while the thread is busy."""

    def __init__(self, work: Callable[[list[Asked]], list[Told | Exception]], limit: int) -> None:
        self._work = work
        self._limit = limit
        self._thread = ThreadPoolExecutor(1, work.__name__)
        self._waiting: list[tuple[Asked, asyncio.Future[Told]]] = []
        self._busy: asyncio.Task[None] | None = None
        self._last = 0  # how many asked the last time

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    async def ask(self, asked: Asked) -> Told:
        """Return what came of it; whatever was begun before this call is not taken for it."""
        told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, told))
        if self._busy is None:
            self._busy = asyncio.create_task(self._run())
        return await told

    async def _run(self) -> None:
        """Keep the thread busy as long as anybody waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            if self._last + len(self._waiting) >= MANY:
                await asyncio.sleep(GATHER_SECONDS)  # who was just told is about to ask again
            self._last = min(len(self._waiting), self._limit)
            group, self._waiting = self._waiting[: self._limit], self._waiting[self._limit :]
            results: list[Told | Exception]
            try:
                work = partial(self._work, [asked for asked, _ in group])
                results = await loop.run_in_executor(self._thread, work)
            except Exception as error:
                results = [error] * len(group)
            for (_, told), result in zip(group, results, strict=True):
                if told.done():  # the client left
                    continue
                if isinstance(result, Exception):
                    told.set_exception(result)
                else:
                    told.set_result(result)
        self._busy = None


class Quick:
    """Answers what the event loop can answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._store_together = Together(self._record, GROUP)
        self._look_together = Together(self._versions, GROUP)
        self._locate_together = Together(self._locate, GROUP)
        self._readers = ThreadPoolExecutor(READERS, "histories")
        self._views: dict[str, Callable[[Request], Awaitable[Reply | None]]] = {
            "/newbeacondetect": self._new_beacon_detect,
            "/extractbeacon": self._extract_beacon,
        }

    def close(self) -> None:
        """End the threads."""
        for together in (self._store_together, self._look_together, self._locate_together):
            together.close()
        self._readers.shutdown()

    async def answer(self, request: Request) -> Reply | None:
        """Answer, or return None for Flask to do it."""
        view = self._views.get(request.path)
        if view is None or request.method not in ("GET", "POST"):
            return None
        try:
            reply = await view(request)
        except (ParameterError, UnicodeDecodeError):
            return None  # Flask tells what is wrong
        except StoreUnavailable as error:
            log.warning("request %s: %s", request.header(b"x-request-id"), error)
            reply = responses.unavailable().for_any_origin()
        except Exception:
            log.exception("Flask tries again")
            return None
        return reply

    async def _new_beacon_detect(self, request: Request) -> Reply | None:
        parameters = _parameters(request)
        if parameters is None:
            return None
        stamp = request.header(b"x-request-start")
        received_at = receipt.believed(stamp, time.time())
        sighting = parsing.sighting(parameters, received_at)
        place = self._store.directory.at_hand(sighting.mac)
        if place is None:  # it is time to look at the directory: once for all who wait
            place = (await self._locate_together.ask(sighting.mac))[0]
        key = receipt.key(request.header(b"x-request-id"), stamp, received_at)
        document = legacy.document(sighting, place, received_at, key)
        [outcome] = await self._store_together.ask([document])
        return ADDED.get(outcome)

    async def _extract_beacon(self, request: Request) -> Reply | None:
        parameters = _parameters(request)
        if parameters is None:
            return None
        wanted = parsing.time_range(parameters)
        version = await self._look_together.ask(wanted.staff_id)
        answer = self._store.histories.at_hand(wanted, version)
        if answer is None:
            loop = asyncio.get_running_loop()
            read = partial(self._store.histories.read, wanted, version, time.time())
            answer = await loop.run_in_executor(self._readers, read)
        accepted, held = request.header(b"accept-encoding"), request.header(b"if-none-match")
        return responses.history(answer, accepted, held).for_any_origin()

    def _locate(self, macs: list[str]) -> list[tuple[Place | None] | Exception]:
        return [(self._store.locate(mac),) for mac in macs]

    def _record(self, members: list[list[Document]]) -> list[list[Outcome] | Exception]:
        return self._store.recorder.store(members)

    def _versions(self, staff_ids: list[StaffId]) -> list[Version | Exception | None]:
        self._store.recorder.check_reachable()
        found = self._store.histories.versions(list(set(staff_ids)))
        return [found.get(staff_id) for staff_id in staff_ids]


def _parameters(request: Request) -> dict[str, Any] | None:
    """Return the parameters as Flask would, None for a body that is neither a form nor JSON."""
    query = _first_values(request.query)
    given = {name: value for name, value in query.items() if value}
    if not request.body:
        return given
    kind = request.header(b"content-type").partition(";")[0].strip().lower()
    if kind == "application/json":
        return legacy.json_object(request.body) | given
    if kind == "application/x-www-form-urlencoded":
        return _first_values(request.body) | given
    return None


def _first_values(encoded: bytes) -> dict[str, str]:
    if b"%" not in encoded and b"+" not in encoded:  # several times as fast
        given: dict[str, str] = {}
        for pair in encoded.decode().split("&"):
            name, _, value = pair.partition("=")
            given.setdefault(name, value)
        return given
    pairs = parse_qsl(encoded.decode(), keep_blank_values=True, errors="werkzeug.url_quote")
    pairs.reverse()  # the first of a repeated name wins
    return dict(pairs)
