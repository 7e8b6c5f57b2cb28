"""Bulkheads: kinds of requests that never wait for each other. Each lane has threads of its own."""

import re
from typing import NamedTuple

from common import routes
from common.routes import BY_PATH, ROUTES, SMALL_BODY_BYTES


class Lane(NamedTuple):
    """A kind of requests, and how many of them are worked on at once."""

    name: str
    threads: int


HEALTH = Lane(routes.HEALTH, 2)  # one that waits for the database must not hide that we live
WRITES = Lane(routes.WRITES, 8)  # what waits together is stored together: with 2 it took 30 % more
SHORT = Lane(routes.SHORT, 4)
LONG = Lane(routes.LONG, 6)  # two of them may wait for changes
# One more than may hash a password or wait for that (access/passwords.py), or wait for a provider
# (access/oidc.py): it refuses the others.
PEOPLE = Lane(routes.PEOPLE, 6)
LANES = (HEALTH, WRITES, SHORT, LONG, PEOPLE)
_EXACT = {route.path: lane for route in ROUTES for lane in LANES if route.lane == lane.name}
# In a lane of its own is also what lies below an address, though there is nothing.
_BELOW = [
    (re.compile(routes.pattern([route for route in routes.API if route.lane == lane.name])), lane)
    for lane in (LONG, PEOPLE)
]


def lane_of(path: str) -> Lane:
    """Return the lane of an address."""
    return _EXACT.get(path) or next((lane for known, lane in _BELOW if known.match(path)), SHORT)


def largest_body(path: str) -> int:
    """Return how many bytes the body of a request to an address may have."""
    route = BY_PATH.get(path)
    return route.body_bytes if route else SMALL_BODY_BYTES
