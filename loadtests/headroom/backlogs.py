"""What comes after the database stood still: much waits, and all want to know who is where."""

import json
import time

import gevent

from loadtests.engine.client import GZIP
from loadtests.headroom.crowds import STAFF_NOW, WINDOW
from loadtests.headroom.site import Site, again_and_again, together, wait_as_told

A_SECOND = 20_000  # of the case's time: 400,000 in 20 s, which two spools hold
BATCH, PHONES = 1000, 8
LOOK_SECONDS = 0.5
DRAINED_SECONDS = 20 * 60
LOOKS = (*STAFF_NOW, WINDOW)


def unseen(path: str) -> str:
    """Return the kind under which it is noted how long nobody got an answer from an address."""
    return f"without {path}"


def backlog(site: Site, seconds: float) -> None:
    """Have many detections accepted while the database stands still; look until all are stored."""
    left = iter(range(int(seconds * A_SECOND / BATCH)))

    def phone() -> None:
        for _ in left:
            items = site.ledger.backlog(BATCH)
            while site.store("batch", items).status not in (200, 202):
                gevent.sleep(LOOK_SECONDS)

    with site.stack.frozen_database():
        together(*[phone] * PHONES)
    until = time.monotonic() + DRAINED_SECONDS
    looking = [gevent.spawn(_look, site, path) for path in LOOKS]
    while _waits(site) and _lives(site) and time.monotonic() < until:
        gevent.sleep(LOOK_SECONDS)
    gevent.killall(looking)


def _waits(site: Site) -> bool:
    """Tell whether a service has something that is not stored, or does not say."""
    answers = [api.send("/api/v1/system") for api in site.services]
    return any(answer.status != 200 or json.loads(answer.body)["queued"] for answer in answers)


def _lives(site: Site) -> bool:
    """Tell whether no part has ended: what waits for one that has waits for ever."""
    return all(group.pids() for group in site.stack.groups().values())


def _look(site: Site, path: str) -> None:
    seen_at = time.monotonic()

    def look() -> None:
        nonlocal seen_at
        response = site.ask(path, path, headers=GZIP)
        now = time.monotonic()
        if response.status == 200:
            site.answers.note(unseen(path), "200", now - seen_at)
            seen_at = now
        wait_as_told(response)

    try:
        again_and_again(DRAINED_SECONDS, LOOK_SECONDS, look)
    finally:
        site.answers.note(unseen(path), "200", time.monotonic() - seen_at)
