"""Many who do nothing wrong: phones, pages and HACS, and the people whom they ask for."""

import os
import time
from collections.abc import Callable
from functools import partial

import gevent

from loadtests import targets
from loadtests.engine import endpoints
from loadtests.engine.client import GZIP, Response, WrongResponse
from loadtests.engine.pace import closed_loop, open_loop
from loadtests.headroom import seeds
from loadtests.headroom.ledger import STAFF
from loadtests.headroom.site import Site, again_and_again, together, wait_as_told

STAFF_NOW = ("/api/v1/staff", "/api/v1/now")
EXPORT = f"/api/v1/staff/{seeds.EXPORTED}/detections?format=csv"
WINDOW = "/retrieveformonitoring"
PAGE = ("/monitoring", "/monitoring/api/staff", "/monitoring/api/coverage", "/monitoring/latest")
PAGES, HACS_SECONDS, PAGE_SECONDS = 10, 2.0, 4.0
POLLERS, FOLLOWERS, READERS, READ_SECONDS = 4, 2, 4, 1.0
BATCH, ATTEMPTS = 50, 10

Load = Callable[[Site, float], None]


def inserts(connections: int) -> Load:
    """Return phones that send one detection after the other, and wait when they are told to."""

    def load(site: Site, seconds: float) -> None:
        closed_loop(connections, seconds, lambda _: wait_as_told(site.insert()))

    return load


def at_once(clients: int, size: int = 1) -> Load:
    """Return clients that all send in the same moment, and again as told until it is stored."""

    def client(site: Site) -> None:
        began = time.monotonic()
        items = site.ledger.backlog(size)
        for _ in range(ATTEMPTS):
            response = site.store("batch" if size > 1 else "insert", items)
            if response.status in targets.STORED:
                site.answers.note("until stored", "200", time.monotonic() - began)
                return
            wait_as_told(response)
        site.answers.note("until stored", "never")

    def load(site: Site, seconds: float) -> None:
        wave = partial(together, *[partial(client, site)] * clients)
        again_and_again(seconds, 2, wave)

    return load


def people(count: int) -> Load:
    """Return readers of all people, half of whom hold an answer already, at the gateway."""

    def load(site: Site, seconds: float) -> None:
        def reader(number: int) -> None:
            path, etag = STAFF_NOW[number % 2], ""

            def read() -> None:
                nonlocal etag
                held = {"If-None-Match": etag} if etag and number >= READERS // 2 else {}
                verify = partial(_everybody, count=count)
                response = site.ask(path, path, verify=verify, headers=GZIP | held)
                etag = response.headers.get("etag", etag)
                wait_as_told(response)

            again_and_again(seconds, 0, read)

        together(*(partial(reader, number) for number in range(READERS)))

    return load


def _everybody(response: Response, count: int) -> None:
    """Check that everybody is in an answer, besides the case's own."""
    people = response.body.count(b'"staff_id"')
    if not count <= people <= count + STAFF:
        raise WrongResponse(f"{people} people instead of {count}")


def pollers(rows: int) -> Load:
    """Return those who poll the last minutes of everybody."""

    def load(site: Site, seconds: float) -> None:
        poll = partial(_poll, site, rows)
        together(*[partial(again_and_again, seconds, READ_SECONDS, poll)] * POLLERS)

    return load


def _poll(site: Site, rows: int | None = None) -> None:
    def verify(response: Response) -> None:
        received = response.body.count(b'"rssi"')
        if rows is not None and received != rows:
            raise WrongResponse(f"{received} rows instead of {rows}")

    site.ask(WINDOW, WINDOW, verify=verify, headers=GZIP)


def campus(rate: float, batches: float = 0.0, histories: float = 0.0) -> Load:
    """Return a campus: phones at a rate, ten open pages, HACS; batches and histories a second."""

    def load(site: Site, seconds: float) -> None:
        together(
            _each_second(rate, seconds, site.insert),
            _each_second(batches, seconds, partial(site.batch, BATCH)),
            _each_second(histories, seconds, partial(_history, site)),
            partial(again_and_again, seconds, HACS_SECONDS, partial(_poll, site)),
            partial(again_and_again, seconds, READ_SECONDS, partial(_now, site)),
            *(partial(_page, site, seconds, number) for number in range(PAGES)),
        )

    return load


def _page(site: Site, seconds: float, number: int) -> None:
    gevent.sleep(number * PAGE_SECONDS / PAGES)
    turn = iter(range(number, 1_000_000))
    ask = partial(again_and_again, seconds, PAGE_SECONDS)
    ask(lambda: site.ask("page", PAGE[next(turn) % len(PAGE)], headers=GZIP))


def _now(site: Site) -> None:
    site.ask("/api/v1/now", "/api/v1/now", headers=GZIP)


def long_histories(site: Site, seconds: float) -> None:
    """100 detections a second, and 5 histories of HISTORY that are not compressed."""

    def verify(response: Response) -> None:
        if (rows := response.body.count(b'"timestamp"')) != seeds.HISTORY:
            raise WrongResponse(f"{rows} rows instead of {seeds.HISTORY}")

    path = endpoints.extract(seeds.EXPORTED)
    together(
        _each_second(100, seconds, site.insert),
        _each_second(5, seconds, lambda: site.ask("history", path, verify=verify)),
    )


def mixed(site: Site, seconds: float) -> None:
    """345 detections a second, and all kinds of readers at once, long histories among them."""
    long = endpoints.extract(seeds.EXPORTED)
    page = f"/api/v1/staff/{seeds.EXPORTED}/detections?limit=3000"
    follow = partial(_follow, site)
    together(
        partial(campus(45, 6, 4), site, seconds),
        _each_second(1, seconds, lambda: site.ask("long history", long, headers=GZIP)),
        _each_second(1, seconds, lambda: site.ask("page of 3,000", page)),
        *[partial(again_and_again, seconds, READ_SECONDS, partial(_poll, site))] * POLLERS,
        *[partial(again_and_again, seconds, READ_SECONDS, follow)] * FOLLOWERS,
        partial(exports, site, seconds, 1),
    )


def _follow(site: Site) -> None:
    wait_as_told(site.ask("feed", f"/api/v1/changes?from={int(time.time()) - 2}&limit=1000&wait=2"))


def _each_second(rate: float, seconds: float, do: Callable[[], object]) -> Callable[[], None]:
    """Return what does something so often a second, whatever the answers."""
    return partial(open_loop, int(rate * seconds), seconds, lambda *_: do())


def _history(site: Site) -> None:
    staff = site.ledger.staff
    site.ask("history", endpoints.extract(staff[os.urandom(1)[0] % len(staff)]), headers=GZIP)


def exports(site: Site, seconds: float, clients: int) -> None:
    """Download one long history again and again."""

    def export() -> None:
        wait_as_told(site.ask("export", EXPORT, verify=_whole))

    together(*[partial(again_and_again, seconds, 0.1, export)] * clients)


def _whole(response: Response) -> None:
    if (rows := response.body.count(b"\r\n") - 1) != seeds.HISTORY:
        raise WrongResponse(f"{rows} lines instead of {seeds.HISTORY}")
