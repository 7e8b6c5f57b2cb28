"""What OwnTracks sends, and what has to become of it: for the tests of the rule and the whole."""

import base64
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ingest.rules.request_parameters import EARLIEST, MAX_FUTURE_SECONDS

UUID = "CA271EAE-5FA8-4E80-8F08-2A302A95A959"
STORED_ID = f"ibeacon:{UUID.lower()}"
T = int(time.time())
SEEN = {
    "_type": "beacon",
    "desc": "lobby",
    "uuid": UUID,
    "major": 1,
    "minor": 7,
    "tst": T,
    "acc": 2,
    "rssi": -67,
    "prox": 2,
    "topic": "owntracks/jane/phone/beacon",
}


def without(*names: str, **more: Any) -> dict[str, object]:
    return {name: value for name, value in SEEN.items() if name not in names} | more


def each(name: str, values: Sequence[Any]) -> list[dict[str, object]]:
    return [without(**{name: value}) for value in values]


def basic(user: str, password: str) -> dict[str, str]:
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


JANE = ("jane", f"{STORED_ID}:1:7", -67, T, "Lobby")


class Case(NamedTuple):
    """Messages, the rows that are stored of them, and how many are ignored for which reasons."""

    bodies: Sequence[object]
    rows: list[tuple[Any, ...]]
    ignored: Mapping[str, int] = MappingProxyType({})


VECTORS = {
    "V-OT-1 a beacon is a detection": Case([SEEN], [JANE]),
    "V-OT-1 of unknown strength": Case(
        [
            without(rssi=rssi, tst=T - number)
            for number, rssi in enumerate((0, 127, None, "", "loud", -300, [1]))
        ]
        + [without("rssi", tst=T - 7)],
        [(*JANE[:2], None, T - number, "Lobby") for number in range(8)],
    ),
    "V-OT-2 two beacons of one second": Case(
        [SEEN, without(minor=8)],
        [JANE, ("jane", f"{STORED_ID}:1:8", -67, T, "unknown")],
    ),
    "V-OT-3 the same again": Case([SEEN, SEEN, without(rssi=-70, acc=3)], [JANE]),
    "V-OT-4 location with regions": Case(
        [
            {
                "_type": "location",
                "lat": 1.29,
                "lon": 103.77,
                "acc": 10,
                "tst": T,
                "tid": "ja",
                "t": "b",
                "inregions": ["lobby"],
                "inrids": ["6da9cf"],
                "created_at": T + 3,
                "topic": "owntracks/jane/phone",
            }
        ],
        [],
        {"location": 1},
    ),
    "V-OT-5 transition": Case(
        [
            {
                "_type": "transition",
                "wtst": T - 9999,
                "lat": 1.29,
                "lon": 103.77,
                "tst": T,
                "acc": 0,
                "tid": "ja",
                "event": "enter",
                "desc": "lobby",
                "t": "b",
                "rid": "6da9cf",
                "topic": "owntracks/jane/phone/event",
            }
        ],
        [],
        {"transition": 1},
    ),
    "V-OT-6 what is ignored": Case(
        [
            {"_type": "lwt", "tst": T},
            {"_type": "status", "iOS": {}},
            {"_type": "card", "name": "Jane"},
            without(_type="waypoint"),
            {"_type": "waypoints", "waypoints": []},
            {"_type": "steps", "steps": -1},
            {"_type": "encrypted", "data": "AAAA"},
            {"_type": "dump", "configuration": {}},
            {"_type": "configuration"},
            [SEEN],
            [],
            b"",
            b" \n",
        ],
        [],
        {
            **dict.fromkeys(("lwt", "status", "card", "waypoint", "waypoints", "steps"), 1),
            **dict.fromkeys(("encrypted", "dump", "configuration"), 1),
            "not an object": 2,
            "empty": 2,
        },
    ),
    "V-OT-8 an older time": Case(
        [SEEN, without(tst=T - 60, minor=9)],
        [JANE, ("jane", f"{STORED_ID}:1:9", -67, T - 60, "unknown")],
    ),
    "broken": Case(
        [
            b"{",
            b"\xff\xfe",
            b"null x",
            b'{"_type":"beacon","_type":"lwt"}',
            b"[" * 8000,
            b"9" * 8000,
        ],
        [],
        {"not JSON": 6},
    ),
    "no object": Case([b"1", b'"beacon"', b"null"], [], {"not an object": 3}),
    "another kind": Case(
        [without("_type"), *each("_type", ["", "Beacon", None, 7, [], {}, "x"])],
        [],
        {"other kind": 8},
    ),
    "no time": Case(
        [
            without("tst"),
            *each("tst", [EARLIEST - 1, T + MAX_FUTURE_SECONDS + 3600]),
            *each("tst", [0, -1, "today", None, True, [], T * 1000, 1e300]),
        ],
        [],
        {"no time": 11},
    ),
    "a time ahead, and one with a fraction": Case(
        [without(tst=T + MAX_FUTURE_SECONDS - 3600), without(tst=T + 0.9)],
        [(*JANE[:3], T + MAX_FUTURE_SECONDS - 3600, "Lobby"), JANE],
    ),
    "no beacon": Case(
        [
            *(without(name) for name in ("uuid", "major", "minor")),
            *each("major", [-1, 65536, 1.5, True, "0x1", None, {}]),
            *each("uuid", ["", UUID[:-1], 7, None, {"uuid": UUID}]),
        ],
        [],
        {"no beacon id": 15},
    ),
    "a beacon in other spellings is the same": Case(
        [without(uuid=UUID.lower().replace("-", ""), major="1", minor=7.0), SEEN], [JANE]
    ),
}

WHO = [
    (
        "the topic counts most",
        {"topic": "owntracks/Jane/iPhone"},
        "?u=query",
        "header",
        "basic",
        "jane",
    ),
    ("then the header", {"topic": "office/jane/phone"}, "?u=query", "Header", "basic", "header"),
    ("then the query", {}, "?u=Query", "", "basic", "query"),
    ("then the user of Basic auth", {}, "", "", "Basic", "basic"),
    ("last the tracker id", {"tid": "JA"}, "", "", "", "ja"),
    ("a number is a number", {"topic": "owntracks/007/x"}, "", "", "", "007"),
    ("as everywhere", {"topic": "owntracks/7/x"}, "", "", "", 7),
    ("no device", {"topic": "owntracks/jane"}, "", "", "", "jane"),
    ("one that is none hides others", {"topic": "owntracks/a b/x"}, "?u=jane", "jane", "", None),
    ("nobody at all", {}, "", "", "", None),
    ("no staff id", {"topic": "owntracks/jane doe/x"}, "?u=jane", "jane", "jane", None),
    ("nor this", {"topic": "owntracks/jäne/x"}, "", "", "", None),
    ("nor half a character", {"topic": "owntracks/\ud800/x"}, "", "", "", None),
    ("nor dots", {"topic": "owntracks/../x"}, "", "", "", None),
    ("nor a list", {"topic": ["owntracks/jane/x"]}, "", "", "", None),
]
