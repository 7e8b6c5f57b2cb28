"""Requests as the gateway passes them on, made as text: they are to cost the generator little."""

import gzip
import os
import time
from itertools import count, islice

from loadtests.lean import Exchange, Make, Response

GZIP = b"Accept-Encoding: gzip\r\n"
FOREVER = 4_102_444_800
STAFF = 14
BACKLOG = 90 * 86_400  # seconds; of a phone that sends it in pieces, one detection each 4 s


def insert(staff_id: int, name: str = "") -> Exchange:
    """Return a phone's detection."""
    query = f"user_address={staff_id}&beacon_address=C2A628384B08&rssi=-20"
    request = _request("GET", f"/newbeacondetect?{query}")
    return Exchange(request, lambda response: response.body == b"New Beacon Detection Added", name)


def insert_of_anybody(number: int, name: str = "") -> Exchange:
    """Return a detection of one of 14 staff."""
    return insert(200 + (number + os.urandom(1)[0]) % STAFF, name)


def batches(size: int) -> Make:
    """Return what makes the next piece of each client's backlog; each detection has an event id.

    Its times go on from piece to piece: the same ones again would measure mongod's cache.
    """
    run, began = os.urandom(6).hex(), int(time.time()) - BACKLOG
    numbers: dict[int, count[int]] = {}

    def make(number: int) -> Exchange:
        counter = numbers.setdefault(number, count())
        items = ",".join(
            f'{{"staff_id":{300 + number},"mac":"C2A628384B08","rssi":-20'
            f',"timestamp":{began + 4 * one % BACKLOG},"event_id":"{run}-{number}-{one}"}}'
            for one in islice(counter, size)
        )
        request = _request(
            "POST", "/api/v1/detections", body=f'{{"detections":[{items}]}}'.encode()
        )
        return Exchange(request, lambda found: found.body.count(b'"status":"stored"') == size)

    return make


def extract(staff_id: int, headers: bytes = b"") -> bytes:
    """Return the request for a whole history."""
    path = f"/extractbeacon?staff_id={staff_id}&start_time=1&end_time={FOREVER}"
    return _request("GET", path, headers)


def documents(response: Response) -> int:
    """Return how many detections a history holds; -1 when it is cut off."""
    zipped = b"content-encoding: gzip" in response.head
    body = gzip.decompress(response.body) if zipped else response.body
    return body.count(b'"timestamp"') if body.rstrip().endswith(b"]}") else -1


def _request(method: str, path: str, headers: bytes = b"", body: bytes = b"") -> bytes:
    named = f"X-Request-ID: {os.urandom(8).hex()}\r\nX-Request-Start: {time.time():.3f}\r\n"
    if body:
        named += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    start = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{named}"
    return start.encode() + headers + b"\r\n" + body
