"""A small server of the legacy endpoints that does not always say the truth."""

import http.server
import json
import threading
import time
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from loadtests.stacks import DIRECTORY
from mongo.directory import parse

PLACES = {
    one["mac"]: (one["level"], one["location"])
    for one in parse(DIRECTORY.read_text("utf-8").splitlines())
}


class Liar:
    """Keeps detections in memory; `lie` is what it does wrong after its first 8 answers."""

    def __init__(self, lie: str = "") -> None:
        self.lie = lie
        self._asked = 0
        self._stored: list[dict[str, Any]] = []
        liar = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path)
                liar._answer(self, path.path, dict(parse_qsl(path.query)))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for one in body["detections"]:
                    liar._store(str(one["staff_id"]), one["mac"], one["timestamp"])
                liar._send(self, b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, request: Any, path: str, given: dict[str, str]) -> None:
        self._asked += 1
        lie = self.lie if self._asked > 8 else ""
        if lie == "fails":
            self._send(request, b"no", 500)
        elif path == "/newbeacondetect":
            if lie != "loses":
                self._store(given["user_address"], given["beacon_address"], int(time.time()))
            self._send(request, b"New Beacon Detection Added")
        elif path == "/extractbeacon":
            self._send(request, self._extract(given["staff_id"], lie))
        else:
            self._send(request, b'{"location": []}', 404 if path == "/monitoring/latest" else 200)

    def _store(self, staff_id: str, mac: str, timestamp: int) -> None:
        level, location = PLACES[mac]
        self._stored.append(
            {"staff_id": staff_id, "level": level, "location": location, "timestamp": timestamp}
        )

    def _extract(self, staff_id: str, lie: str) -> bytes:
        found = [dict(one) for one in self._stored if one["staff_id"] == staff_id]
        found.sort(key=lambda one: -int(one["timestamp"]))
        for one in found:
            del one["staff_id"]
        if lie == "drops":
            found = found[:-1]
        elif lie == "reorders" and len(found) > 1:
            found[0], found[-1] = found[-1], found[0]
        elif lie == "moves" and found:
            found[3]["location"] = "elsewhere"
        return json.dumps({"location": found}).encode()

    def _send(self, request: Any, body: bytes, status: int = 200) -> None:
        request.send_response_only(status)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(body)
