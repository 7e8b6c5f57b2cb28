"""Those who send or ask for too much, beside honest requests."""

import time
from functools import partial

from loadtests.engine import endpoints
from loadtests.headroom import seeds
from loadtests.headroom.crowds import Load, exports
from loadtests.headroom.site import Site, again_and_again, together, wait_as_told

IMPORT = "/api/v1/beacons/import"
PEOPLE_IMPORT = "/api/v1/people/import"
LEGACY = "/newbeacondetect"
FORM, CSV = "application/x-www-form-urlencoded", "text/csv"
ITEMS, BEACONS, PEOPLE = 1_000, 2_000, 5_000  # the most that one request may hold
PAUSE_SECONDS = 0.5  # between two requests of one client


def bodies(kind: str, path: str, body: bytes, content_type: str, clients: int) -> Load:
    """Return clients that send one body again and again."""

    def send(site: Site) -> None:
        wait_as_told(site.ask(kind, path, body, headers={"Content-Type": content_type}))

    def load(site: Site, seconds: float) -> None:
        hostile = partial(again_and_again, seconds, PAUSE_SECONDS, partial(send, site))
        together(partial(site.honest, seconds), *[hostile] * clients)

    return load


def bad_lines() -> Load:
    """Return imports of 1 MiB, nearly each byte of which is a bad line."""
    body = b"mac,level,location,x,y\n" + b"x\n" * 524_000
    return bodies("import", f"{IMPORT}?dry_run=1", body, CSV, clients=2)


def empty_items() -> Load:
    """Return batches of 1 MiB that hold nothing."""
    body = b'{"detections":[' + b",".join([b"{}"] * 349_000) + b"]}"
    return bodies("batch of {}", endpoints.BATCH, body, "application/json", clients=4)


def wrong_items(clients: int) -> Load:
    """Return batches of an app with a bug: each value of each item is of a wrong type."""
    item = b'{"staff_id":{},"mac":[],"rssi":"x"}'
    body = b'{"detections":[' + b",".join([item] * ITEMS) + b"]}"
    return bodies("batch of wrong types", endpoints.BATCH, body, "application/json", clients)


def forms(size: int, clients: int) -> Load:
    """Return forms in which each value is half a character."""
    return bodies("form", LEGACY, b"a=%C3&" * size, FORM, clients)


def largest(site: Site, seconds: float) -> None:
    """Send and ask for the most that an endpoint takes, one of each at a time."""
    lines = [f"{n:012X},{n % 7},{'Hall ' * 12}{n},1.5,2.5" for n in range(1, BEACONS + 1)]
    beacons = "\n".join(["mac,level,location,x,y", *lines]).encode()
    rows = [f"{n},Jane Tan {n},\N{BROOM},{'n' * 180}" for n in range(PEOPLE)]
    people = "\n".join(["staff_id,name,team,note", *rows]).encode()
    form = b"staff_id=%d&" % seeds.EXPORTED + b"a=%C3&" * 1_300
    path = f"/api/v1/staff/{seeds.EXPORTED}/detections"
    feed = f"/api/v1/changes?from={int(time.time())}&limit={ITEMS}"
    asked = (
        partial(site.batch, ITEMS),
        partial(site.ask, "import", f"{IMPORT}?dry_run=1", beacons, headers={"Content-Type": CSV}),
        partial(site.ask, "people", PEOPLE_IMPORT, people, headers={"Content-Type": CSV}),
        partial(site.ask, "form", LEGACY, form, headers={"Content-Type": FORM}),
        partial(site.ask, "page of 3,000", f"{path}?limit=3000"),
        partial(site.ask, "history", endpoints.extract(seeds.EXPORTED)),
        partial(site.ask, "feed", feed),
    )
    again = partial(again_and_again, seconds, PAUSE_SECONDS)
    together(partial(site.honest, seconds), *(partial(again, ask) for ask in asked))


def slow_downloads(count: int) -> Load:
    """Return downloads of seconds, while health and batches are asked for."""

    def load(site: Site, seconds: float) -> None:
        again = partial(again_and_again, seconds, PAUSE_SECONDS)
        health = (partial(site.ask, "/healthz", "/healthz", api=api) for api in site.services)
        together(
            partial(exports, site, seconds, count),
            *(partial(again, ask) for ask in health),
            partial(again, partial(site.batch, 50)),
            partial(site.honest, seconds),
        )

    return load
