"""Bodies that would grow, and bodies that the database would take for an operator."""

import gzip
import json
import zlib
from functools import cache
from typing import Any
from urllib.parse import urlencode

from tests.security.case import CREDENTIALS, Case

JSON, FORM, CSV = "application/json", "application/x-www-form-urlencoded", "text/csv"
MAC = "C2A628384B08"
# What must never be stored, however it is packed.
INFLATED = {"user_address": "inflated", "beacon_address": MAC, "rssi": -20}
_ITEM = {"staff_id": "inflated", "mac": MAC, "rssi": -20}
_BEACON = {"level": "inflated", "location": "inflated"}
_PERSON = {"name": "inflated", "team": "inflated"}
_UNCHANGED = "AABBCCDDEE77"  # no beacon of the directory

# All of them are answered alike, so what is stored of them is honest.
_OWNTRACKS: tuple[str, str, dict[str, Any]] = (
    "POST",
    "/owntracks",
    {
        "_type": "beacon",
        "uuid": "ca271eae-5fa8-4e80-8f08-2a302a95a959",
        "major": 1,
        "minor": 7,
        "tst": 1_700_000_000,
        "rssi": -20,
        "topic": "owntracks/honest/phone",
        "tid": "honest",
    },
)

# Every operation that takes a body, with one that is good.
_POSTS = [
    ("POST", "/newbeacondetect", JSON, json.dumps(INFLATED)),
    ("POST", "/newbeacondetect", FORM, urlencode(INFLATED)),
    ("POST", "/extractbeacon", JSON, '{"staff_id":"inflated","start_time":0,"end_time":1}'),
    ("POST", "/owntracks", JSON, json.dumps(_OWNTRACKS[2] | {"topic": "owntracks/inflated/x"})),
    ("POST", "/api/v1/detections", JSON, json.dumps(_ITEM)),
    ("POST", "/api/v1/beacons/import", CSV, f"mac,level,location,x,y\n{_UNCHANGED},1,inflated,,\n"),
    ("PUT", f"/api/v1/beacons/{_UNCHANGED}", JSON, json.dumps(_BEACON)),
    ("POST", "/api/v1/people/import", CSV, "staff_id,name\ninflated,inflated\n"),
    ("PUT", "/api/v1/people/inflated", JSON, json.dumps(_PERSON)),
]
_MEGABYTE = b" " * 2**20


@cache
def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


@cache
def _bomb() -> bytes:
    """Return 50 MiB in a few hundred bytes."""
    return _gzip(_gzip(_MEGABYTE * 50))


def _packed(body: bytes) -> dict[str, tuple[str, bytes]]:
    """Return a body and a bomb in each content coding: 50 MiB in a few bytes, 4 MiB in 4 kB."""
    return {
        "gzip": ("gzip", _gzip(body)),
        "x-gzip": ("x-gzip", _gzip(body)),
        "deflate": ("deflate", zlib.compress(body)),
        "raw deflate": ("deflate", zlib.compress(body)[2:-4]),
        "br": ("br", b"\x8b\x02\x80" + body + b"\x03"),  # stored as it is
        "zstd": ("zstd", b"\x28\xb5\x2f\xfd" + body),
        "identity, gzip": ("identity, gzip", _gzip(body)),
        "gzip twice": ("gzip, gzip", _gzip(_gzip(body))),
        "GZIP": ("GZIP", _gzip(body)),
        "bomb": ("gzip", _gzip(body + _MEGABYTE * 4)),
        "bomb in a bomb": ("gzip, gzip", _bomb()),
        "bomb of deflate": ("deflate", zlib.compress(body + _MEGABYTE * 4)),
    }


_OPERATORS: dict[str, Any] = {
    "$gt": {"$gt": ""},
    "$ne": {"$ne": None},
    "$where": {"$where": "sleep(9000)"},
    "$regex": {"$regex": ".*"},
    "$in": {"$in": [1]},
    "$oid": {"$oid": "0" * 24},
    "$function": {"$function": {"body": "function(){}", "args": [], "lang": "js"}},
    "list": ["$gt"],
    "list of objects": [{"$gt": ""}],
    "key with a dot": {"a.b": 1},
    "key with NUL": {"a\0b": 1},
    "empty key": {"": 1},
    "__proto__": {"__proto__": {"a": 1}},
    "deep": json.loads("[" * 50 + "]" * 50),
}
_FIELDS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/newbeacondetect", INFLATED | {"timestamp": 1_700_000_000, "event_id": "a"}),
    ("POST", "/extractbeacon", {"staff_id": "inflated", "start_time": 0, "end_time": 1}),
    ("POST", "/api/v1/detections", _ITEM | {"timestamp": 1_700_000_000, "event_id": "a"}),
    ("PUT", f"/api/v1/beacons/{_UNCHANGED}", _BEACON | {"x": 1, "y": 2}),
    ("PUT", "/api/v1/people/inflated", _PERSON | {"note": "inflated", "on_duty": True}),
]
# Names beside the declared ones: ignored, and never stored (`test_nothing_strange_was_stored`).
_NAMES = ["$set", "$where", "a.b", "a\0b", "", "_id", "__proto__", "constructor", "level", "$" * 99]
_HONEST = {
    "/newbeacondetect": INFLATED | {"user_address": "honest"},
    "/api/v1/detections": _ITEM | {"staff_id": "honest"},
}
_TREES = {
    "JSON of 2,000 brackets": b"[" * 2_000,
    "JSON of 3,000 objects": b'{"a":' * 1_500,
    "JSON with a key twice": b'{"staff_id":"inflated","staff_id":"inflated"}',
    "JSON of a number of 5,000 digits": b'{"rssi":' + b"1" * 5_000 + b"}",
    "JSON in UTF-16": json.dumps(_ITEM).encode("utf-16"),
    "JSON of NaN": b'{"staff_id":NaN}',
    "XML with entities": b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    "YAML": b"!!python/object/apply:os.system ['true']",
    "pickle": b"cos\nsystem\n(S'true'\ntR.",
}


def cases() -> list[Case]:
    """Return all of them."""
    return [*_bombs(), *_operators(), *_names(), *_trees()]


def _bombs() -> list[Case]:
    bombs = []
    for method, path, kind, body in _POSTS:
        # What /api/v1 inflates is good, and stored openly.
        honest = _packed(body.replace("inflated", "honest").encode())
        for name, packed in _packed(body.encode()).items():
            is_taken = name in ("gzip", "GZIP") and path.startswith("/api/v1")
            coding, data = honest[name] if is_taken else packed
            bombs.append(_case(f"{name}: {method} {path} {kind}", method, path, kind, data, coding))
    return bombs


def _operators() -> list[Case]:
    operators = []
    for method, path, fields in (*_FIELDS, _OWNTRACKS):
        for field in fields:
            for name, value in _OPERATORS.items():
                body = json.dumps(fields | {field: value}).encode()
                operators.append(_case(f"{name} for {field}: {path}", method, path, JSON, body))
            form = urlencode({n: v for n, v in fields.items() if n != field})
            form = form.replace("inflated", "honest")  # the field may be one that nobody must send
            text = f"{form}&{field}[$gt]=".encode()
            operators.append(_case(f"form {field}[$gt]: {path}", method, path, FORM, text))
    return operators


def _names() -> list[Case]:
    return [
        _case(
            f"field named {name[:9]!r}: {path}",
            "POST",
            path,
            JSON,
            json.dumps(fields | {name: {"$gt": 1}}).encode(),
        )
        for path, fields in _HONEST.items()
        for name in _NAMES
    ]


def _trees() -> list[Case]:
    return [
        _case(f"{name}: {path}", method, path, JSON, body)
        for method, path, _ in (*_FIELDS, _OWNTRACKS)
        for name, body in _TREES.items()
    ]


def _case(name: str, method: str, path: str, kind: str, body: bytes, coding: str = "") -> Case:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    head += f"Content-Encoding: {coding}\r\n" if coding else ""
    sent = head.encode() + CREDENTIALS + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    return Case(name, sent)
