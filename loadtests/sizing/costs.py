"""What each part costs, and where that was measured: the one table that the plan computes with."""

from typing import NamedTuple

MEASURED = "measurements.md"
NOT_MEASURED = "not measured: an assumption"


class Cost(NamedTuple):
    """One figure, its unit, and its source: a section of docs/measurements.md, or another."""

    meaning: str
    value: float
    unit: str
    source: str


class InsertCost(NamedTuple):
    """CPU µs of each part for one detection, at so many a second through two ingest services."""

    rate: float
    services: float
    gateway: float
    mongod: float


# docs/playbook-run/speed.md. Those of the last line share their groups: 32 phones wait at any time.
# Between these lines, and not beyond them, the plan draws a line through their logarithms.
INSERTS = (
    InsertCost(35, 1600, 392, 1607),
    InsertCost(63, 1341, 314, 1381),
    InsertCost(596, 614, 107, 529),
    InsertCost(3021, 198, 61, 123),
)
GROUPED = INSERTS[-1]

# How much more mongod takes with so many people who all send, against 14.
CROWDS = ((14, 1.0), (5_000, 1.67), (50_000, 2.13))

IDLE = Cost("the whole idle box of 1 GB", 2.4 / 60, "CPU", f"{MEASURED}#the-whole-box")
READ_SERVICES = Cost("a history of 3,000: services", 793, "µs", f"{MEASURED}#speed")
READ_GATEWAY = Cost("the same: gateway", 266, "µs", f"{MEASURED}#speed")
READ_MONGOD = Cost("the same: mongod", 339, "µs", f"{MEASURED}#speed")
SEAL_SERVICES = Cost(
    "to seal and delete a detection: services", 54, "µs", f"{MEASURED}#ten-years-on-eight-gigabytes"
)
SEAL_MONGOD = Cost("the same: mongod", 72, "µs", f"{MEASURED}#ten-years-on-eight-gigabytes")
SHARDED = Cost(
    "routers and shards together, against one mongod, both emulated",
    2.6,
    "times",
    f"{MEASURED}#speed",
)
ROUTERS_SHARE = Cost("of which the routers have", 0.5, "", NOT_MEASURED)
COMMAND = Cost(
    "a command of mongod, one detection in it and thirty-two",
    433,
    "µs",
    f"{MEASURED}#speed",
)
GROUP = Cost("detections that share a command where 32 phones wait", 16, "", f"{MEASURED}#speed")
HANDSHAKE = Cost(
    "a TLS handshake of the gateway; each detection has one where phones are many",
    550,
    "µs",
    "by hand, 2026-11-21: 400 to 700",
)
ROW = Cost("a row with its indexes", 270, "bytes", f"{MEASURED}#ten-years-on-eight-gigabytes")
SEALED = Cost(
    "a sealed detection as it trickles in, with indexes",
    6.71,
    "bytes",
    f"{MEASURED}#ten-years-on-eight-gigabytes",
)
ROW_DAYS = Cost("so long a detection is a row", 2, "days", "`SEAL_HOURS`")
OPLOG = Cost("a detection in the oplog, on the disk", 88, "bytes", f"{MEASURED}#faults")
OPLOG_HOURS = Cost("so long the oplog keeps it", 2, "hours", "`mongo/mongod.conf`")
CACHE_SECONDS = Cost(
    "so long mongod's cache has to hold the rows, to insert them quickly",
    1800,
    "s",
    f"{MEASURED}#a-crowds-backlog-and-a-small-cache",
)
CACHED_ROW = Cost(
    "such a row in the cache: 200,000 were quick in 48 MB",
    240,
    "bytes",
    f"{MEASURED}#a-crowds-backlog-and-a-small-cache",
)
LARGEST_WINDOW = Cost(
    "rows that `/retrieveformonitoring` tells at most", 350_000, "", "`last_minutes.py`"
)
CROWD_TOLD = Cost(
    "people that `/api/v1/now` told within the gateway's patience",
    20_000,
    "",
    f"{MEASURED}#headroom",
)
COMMITS = Cost(
    "commits a second of one mongod: one connection's detections", 596, "", f"{MEASURED}#speed"
)
PAGES = Cost(
    "pages that a checkpoint writes for each person who sent since the last",
    2,
    "",
    NOT_MEASURED,
)
FULL = Cost("how full CPU and disk may be", 0.6, "", NOT_MEASURED)

COSTS = (
    IDLE,
    READ_SERVICES,
    READ_GATEWAY,
    READ_MONGOD,
    SEAL_SERVICES,
    SEAL_MONGOD,
    SHARDED,
    ROUTERS_SHARE,
    COMMAND,
    GROUP,
    HANDSHAKE,
    ROW,
    SEALED,
    ROW_DAYS,
    OPLOG,
    OPLOG_HOURS,
    CACHE_SECONDS,
    CACHED_ROW,
    LARGEST_WINDOW,
    CROWD_TOLD,
    COMMITS,
    PAGES,
    FULL,
)
