"""The kinds of load that a case puts on services. Responses are verified by what costs little."""

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count, islice
from typing import NamedTuple

import gevent

from loadtests.engine import endpoints
from loadtests.engine.client import KEEP_ALIVE, Api, Response, WrongResponse
from loadtests.engine.endpoints import History
from loadtests.engine.pace import closed_loop, open_loop
from loadtests.plans import MAC

STAFF = 14  # who send; 0 to 13 have long histories
LONG, SHORT = 30_000, 3_000  # detections of a history
SHORT_STAFF = 100  # who has the short one
READERS, PHONES, SENDERS = 4, 8, 4
WRITES_PER_SECOND = 5  # to the history that is read
EXTRACTS_PER_SECOND = 14.3  # PERF-TP-2
BACKLOG = 90 * 86_400  # seconds; of a phone that sends it in pieces, one detection each 4 s


class Target(NamedTuple):
    """The services that get the load, and for how many seconds."""

    apis: list[Api]
    seconds: float
    stored: Callable[[int], int]  # how many detections of somebody are stored


Load = Callable[[Target], object]  # the rows are the services'
Headers = Mapping[str, str]


def inserts(on: Target, connections: int, name: str = "") -> None:
    """Phones that send one detection after the other."""

    def send(number: int) -> None:
        path = endpoints.insert_now(200 + (number + os.urandom(1)[0]) % STAFF)
        on.apis[0].measure(name, path, endpoints.verify_insert, None, _headers())

    closed_loop(connections, on.seconds, send)


def batches(size: int) -> Load:
    """Return phones that send a backlog piece by piece, each detection with an event id.

    Its times go on from piece to piece: the same ones again would measure mongod's cache.
    """
    began, backlogs = int(time.time()) - BACKLOG, [count() for _ in range(SENDERS)]
    verify = partial(endpoints.verify_batch, size=size)

    def send(api: Api, number: int) -> None:
        times = (began + 4 * position % BACKLOG for position in islice(backlogs[number], size))
        items = [endpoints.detection(300 + number, MAC, at) for at in times]
        api.measure("", endpoints.BATCH, verify, endpoints.batch(items), _headers())

    return lambda on: closed_loop(SENDERS, on.seconds, partial(send, on.apis[0]))


def live(on: Target, headers: Headers) -> None:
    """Four readers of one history of 3,000, to which detections come all the time."""
    api, history = on.apis[0], History(on.stored(SHORT_STAFF))

    def write(_number: int, _due: float) -> None:
        history.sent += 1
        history.acknowledged += api.send(endpoints.insert_now(SHORT_STAFF)).status == 200

    writing = gevent.spawn(open_loop, round(on.seconds * WRITES_PER_SECOND), on.seconds, write)
    _read(on, history, "", headers)
    writing.get()


def mixed(on: Target) -> None:
    """Eight phones and four readers of the short history at once."""
    phones = gevent.spawn(inserts, on, PHONES, "phones")
    _read(on, History(on.stored(SHORT_STAFF)), "readers", KEEP_ALIVE)
    phones.get()


def cold(on: Target) -> None:
    """Four long histories at once from a service that has just started."""
    open_loop(4, 0, partial(_long_history, on, KEEP_ALIVE))


def paced(on: Target, headers: Headers) -> None:
    """Long histories at a fixed rate, for twice the seconds, from each service in turn."""
    requests = max(1, int(EXTRACTS_PER_SECOND * 2 * on.seconds))
    open_loop(requests, 2 * on.seconds, partial(_long_history, on, headers))


def each_once(on: Target, headers: Headers) -> None:
    """Long histories until each service has seen each of them."""
    for number in range(STAFF * len(on.apis)):
        _long_history(on, headers, number)


def _read(on: Target, history: History, name: str, headers: Headers) -> None:
    """Have the short history read all the time: each response must be exact."""

    def read(_number: int) -> None:
        history.read_live(on.apis[0], name, SHORT_STAFF, _headers(headers))

    closed_loop(READERS, on.seconds, read)


def _long_history(on: Target, headers: Headers, number: int, due: float | None = None) -> None:
    """Read a whole history; two services take turns by the number, and get the same ones."""
    api = on.apis[number % len(on.apis)]
    path = endpoints.extract(number // len(on.apis) % STAFF)

    def verify(response: Response) -> None:
        whole = response.body.rstrip().endswith(b"]}")
        if (rows := response.body.count(b'"timestamp"') * whole) != LONG:
            raise WrongResponse(f"{rows} detections instead of {LONG}")

    api.measure("", path, verify, None, _headers(headers), due=due)


def _headers(more: Headers = KEEP_ALIVE) -> dict[str, str]:
    """Return what the gateway adds to a request."""
    named = {"X-Request-ID": os.urandom(8).hex(), "X-Request-Start": f"{time.time():.3f}"}
    return named | dict(more)
