"""Every address of the ingest services: who may do what there, and what that costs.

The gateway's addresses, methods, largest bodies and groups, the services' lanes and roles, and the
answers while the circuit is open are made from this table.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

# What somebody needs to be; services/ingest/ingest/rules/roles.py says what each may do.
NOBODY, INGEST, READ, ADMIN = "nobody", "ingest", "read", "admin"
# Kinds of requests that never wait for each other in a service (web/lanes.py). Health is how the
# page sees that we live: reads that hang must not hold it up. Long: seconds or megabytes.
HEALTH, WRITES, SHORT, LONG, PEOPLE = "health", "writes", "short-reads", "long-reads", "people"
# What a request costs the gateway: its circuit, time limit and limits of number (gateway/*.conf).
# Pollers share one answer.
DETECTION_GROUP, BATCH_GROUP, SHORT_GROUP = "ingest", "batch", "short_read"
HISTORY_GROUP, LONG_GROUP, POLLERS = "history", "long_read", "pollers"

# What a request may make grow is refused before anything is made of it. A service has 64 MiB.
SMALL_BODY_BYTES = 8 * 1024  # a detection has five parameters, a beacon as many
BATCH_BODY_BYTES = 384 * 1024  # 1000 detections with an event id of 128 characters and a time
FILE_BODY_BYTES = 1024 * 1024  # 2000 beacons with places of 64 characters of 4 bytes

PREFIX = "/api/v1"


class Route(NamedTuple):
    """One address; `roles` has what each of its methods needs."""

    path: str  # <name> stands for one part of an address
    roles: dict[str, str]
    lane: str = SHORT
    group: str = SHORT_GROUP
    body_bytes: int = SMALL_BODY_BYTES
    head: bool = True  # whether HEAD is answered as GET without a body
    redirects: bool = False  # whether it leads people elsewhere

    @property
    def allowed(self) -> str:
        """Return all methods, as the header `Allow` says them."""
        methods = [
            "GET, HEAD" if method == "GET" and self.head else method for method in self.roles
        ]
        return ", ".join([*methods, "OPTIONS"])

    @property
    def logged_as(self) -> str:
        """Return what the log of requests says of it: each name or id is a star."""
        return re.sub(r"<\w+>", "*", self.path)

    @property
    def kind(self) -> str:
        """Return what its requests are counted as in metrics."""
        return HEALTH if self.lane == HEALTH else self.group

    @property
    def pattern(self) -> str:
        """Return a regular expression of the whole address."""
        return re.sub(r"<\w+>", "[^/]+", self.path)


_READ, _ADMIN = {"GET": READ}, {"GET": ADMIN}
_STORE_OR_NOBODY = {"GET": INGEST, "POST": INGEST}
_EITHER = {"GET": READ, "POST": READ}

# Pages of any origin may call these, also while the circuit is open.
DETECT = Route("/newbeacondetect", _STORE_OR_NOBODY, group=DETECTION_GROUP, head=False)
EXTRACT = Route("/extractbeacon", _EITHER, group=HISTORY_GROUP)
MONITOR = Route("/retrieveformonitoring", _EITHER, group=POLLERS)
LEGACY = (DETECT, EXTRACT, MONITOR)
LEGACY_PATHS = tuple(route.path for route in LEGACY)

# What iPhones with OwnTracks call, where WAYMARK_OWNTRACKS=on.
OWNTRACKS = Route("/owntracks", {"POST": INGEST}, group=DETECTION_GROUP)

_CHANGE = {"GET": READ, "PUT": ADMIN, "DELETE": ADMIN}
_CORRECT = {"GET": ADMIN, "POST": ADMIN, "DELETE": ADMIN}
_LOG_IN = {"GET": READ, "POST": NOBODY, "DELETE": READ}
_OPEN = {"GET": NOBODY}
_BATCH = {"POST": INGEST}
_FILE = _FORGET = {"POST": ADMIN}
_ACCOUNT = {"PUT": ADMIN, "DELETE": ADMIN}


def _api(path: str, roles: dict[str, str], lane: str = SHORT, group: str = SHORT_GROUP) -> Route:
    return Route(PREFIX + path, roles, lane, group)


API = (
    _api("/detections", _BATCH, WRITES, BATCH_GROUP)._replace(body_bytes=BATCH_BODY_BYTES),
    _api("/staff", _READ),
    _api("/now", _READ),
    _api("/staff/<staff_id>/detections", _READ, LONG, HISTORY_GROUP),
    _api("/staff/<staff_id>/lost_contact", {"PUT": ADMIN}, LONG, HISTORY_GROUP),
    _api("/coverage", _READ, LONG, HISTORY_GROUP),
    _api("/visits", _READ, LONG, HISTORY_GROUP),
    _api("/changes", _READ, LONG, LONG_GROUP),
    _api("/beacons", _READ, LONG, LONG_GROUP),
    _api("/beacons/import", _FILE, LONG, LONG_GROUP)._replace(body_bytes=FILE_BODY_BYTES),
    _api("/beacons/unknown", _READ, LONG, LONG_GROUP),
    _api("/beacons/batteries", _READ, LONG, LONG_GROUP),
    _api("/beacons/<mac>", _CHANGE, LONG, LONG_GROUP),
    _api("/beacons/<mac>/correction", _CORRECT, LONG, LONG_GROUP),
    _api("/people", _READ, LONG, LONG_GROUP),
    _api("/people/import", _FILE, LONG, LONG_GROUP)._replace(body_bytes=FILE_BODY_BYTES),
    _api("/people/unnamed", _READ, LONG, LONG_GROUP),
    _api("/people/forgotten", _FORGET, LONG, LONG_GROUP),
    _api("/people/<staff_id>", _CHANGE, LONG, LONG_GROUP),
    _api("/session", _LOG_IN, PEOPLE),
    _api("/session/everywhere", {"POST": READ}, PEOPLE),
    _api("/session/password", {"PUT": READ}, PEOPLE),
    # A provider is asked, for 6 s at most.
    _api("/session/oidc", _OPEN, PEOPLE, LONG_GROUP)._replace(redirects=True),
    _api("/session/oidc/callback", _OPEN, PEOPLE, LONG_GROUP)._replace(redirects=True),
    _api("/accounts", _ADMIN, PEOPLE),
    _api("/accounts/<name>", _ACCOUNT, PEOPLE),
    _api("/tokens", {"GET": ADMIN, "POST": ADMIN}),
    _api("/tokens/<token_id>", {"DELETE": ADMIN}),
    _api("/audit", _ADMIN, LONG, LONG_GROUP),
    _api("/system", _READ, HEALTH),
    _api("/system/database", _READ, LONG, LONG_GROUP),
    _api("/openapi.json", _READ),
)
DOCS = Route("/docs", _READ)
HEALTHZ, READYZ = Route("/healthz", _OPEN, HEALTH), Route("/readyz", _OPEN, HEALTH)
METRICS = Route("/metrics", _READ, HEALTH)
ROUTES = (*LEGACY, OWNTRACKS, *API, DOCS, HEALTHZ, READYZ, METRICS)
BY_PATH = {route.path: route for route in ROUTES}

# What is at none of these addresses.
OTHER = "other"
KINDS = (*dict.fromkeys(route.kind for route in ROUTES), OTHER)


def role(method: str, path: str) -> str:
    """Return what a method of an address needs."""
    return BY_PATH[path].roles[method]


_KINDS = {route.path: route.kind for route in ROUTES}
_NAMED = [(re.compile(route.pattern), route.kind) for route in ROUTES if "<" in route.path]


def kind_at(path: str) -> str:
    """Return what a request to an address is counted as."""
    return _KINDS.get(path) or next(
        (kind for named, kind in _NAMED if named.fullmatch(path)), OTHER
    )


def pattern(routes: Sequence[Route]) -> str:
    """Return a regular expression that matches the beginning of addresses of the API.

    Where a part of an address is a name, all below belongs to it.
    """
    below = {route.path.partition("<")[0] for route in routes if "<" in route.path}
    parts = [
        next((start for start in below if route.path.startswith(start)), f"{route.path}$")
        for route in routes
    ]
    texts = (part.removeprefix(f"{PREFIX}/") for part in dict.fromkeys(parts))
    return f"^{PREFIX}/({'|'.join(texts)})"
