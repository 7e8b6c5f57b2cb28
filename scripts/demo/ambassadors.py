"""Fourteen simulated ambassadors, two on each of seven levels, for a page that lives.

    python -m scripts.demo.ambassadors http://127.0.0.1:8080

Each walks its level and reports the nearest beacon every 4 s, as the source system's phones do.
It behaves as a good client: what was not confirmed is sent again with the same event id. Where
access is required, and no WAYMARK_TOKEN is set, it makes a token of its own at each start.
"""

import collections
import http.client
import os
import random
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

from common.beacon import Beacon
from common.settings import REQUIRED
from mongo.directory import parse

DIRECTORY = Path(__file__).resolve().parents[2] / "mongo" / "directory.csv"
LEVELS = 7
AMBASSADORS_A_LEVEL = 2
INTERVAL_SECONDS = 4.0
TIMEOUT_SECONDS = 5.0
TOKEN, TOKEN_DAYS = "WAYMARK_TOKEN", 30
BACKLOG = 900  # an hour without the gateway; then the oldest go first


class Ambassador(threading.Thread):
    """One phone on a walk along the beacons of its level."""

    def __init__(self, gateway_url: str, staff_id: int, beacons: list[Beacon]) -> None:
        super().__init__(daemon=True, name=f"staff {staff_id}")
        self._url = f"{gateway_url}/newbeacondetect"
        self._staff_id = staff_id
        self._beacons = beacons
        self._at = random.randrange(len(beacons))
        self._backlog: collections.deque[dict[str, object]] = collections.deque(maxlen=BACKLOG)
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        if token := os.environ.get(TOKEN):
            self._opener.addheaders.append(("Authorization", f"Bearer {token}"))

    def run(self) -> None:
        """Report for ever, spread over the interval so that the phones do not call in step."""
        due = time.monotonic() + random.uniform(0, INTERVAL_SECONDS)
        while True:
            time.sleep(max(0.0, due - time.monotonic()))
            due += INTERVAL_SECONDS
            self._hear()
            while self._backlog and self._send(self._backlog[0]):
                self._backlog.popleft()

    def _hear(self) -> None:
        if random.random() < 0.2:
            step = random.choice((-1, 1))
            self._at = min(max(self._at + step, 0), len(self._beacons) - 1)
        detection = {
            "user_address": self._staff_id,
            "beacon_address": self._beacons[self._at].mac,
            "rssi": random.randint(-85, -45),
            "timestamp": int(time.time()),
            "event_id": uuid.uuid4().hex,
        }
        self._backlog.append(detection)

    def _send(self, detection: dict[str, object]) -> bool:
        body = urllib.parse.urlencode(detection).encode()
        try:
            self._opener.open(self._url, body, timeout=TIMEOUT_SECONDS).close()
        except (OSError, http.client.HTTPException) as error:
            print(f"{self.name}: {error}; {len(self._backlog)} waiting", file=sys.stderr)
            return False
        return True


def main(gateway_url: str) -> None:
    """Walk until the process is stopped; only ever against this machine."""
    if urllib.parse.urlsplit(gateway_url).hostname != "127.0.0.1":
        sys.exit("the demo only talks to a gateway on 127.0.0.1")
    if not os.environ.get(TOKEN) and os.environ.get("WAYMARK_ACCESS") == REQUIRED:
        os.environ[TOKEN] = _new_token()
    beacons = parse(DIRECTORY.read_text("utf-8"))
    walks: list[Ambassador] = []
    for level in range(1, LEVELS + 1):
        on_level = [beacon for beacon in beacons if beacon.level == str(level)]
        for _ in range(AMBASSADORS_A_LEVEL):
            walks.append(Ambassador(gateway_url, len(walks) + 1, on_level))
    for walk in walks:
        walk.start()
    for walk in walks:
        walk.join()


def _new_token() -> str:
    """Return the secret of a token that is forgotten by itself."""
    command = ["create", "--role", "ingest", "--days", str(TOKEN_DAYS), "the demo"]
    made = subprocess.run(
        [sys.executable, "-m", "ingest.commands.tokens", *command],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return made.stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1])
