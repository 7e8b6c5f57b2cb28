"""A small server of the legacy endpoints whose responses are not always right."""

import http.server
import json
import threading
import time
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mongo.directory import parse
from scripts.processes.cluster import DIRECTORY

PLACES = {
    beacon.mac: (beacon.level, beacon.location) for beacon in parse(DIRECTORY.read_text("utf-8"))
}


class FaultyServer:
    """Keeps detections in memory; `fault` is what it does wrong after its first 8 responses."""

    def __init__(self, fault: str = "") -> None:
        self._fault = fault
        self._requests = 0
        self._stored: list[dict[str, Any]] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path)
                server._respond(self, path.path, dict(parse_qsl(path.query)))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for detection in body["detections"]:
                    server._store(
                        str(detection["staff_id"]), detection["mac"], detection["timestamp"]
                    )
                server._send(self, b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> "FaultyServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _respond(self, request: Any, path: str, parameters: dict[str, str]) -> None:
        self._requests += 1
        fault = self._fault if self._requests > 8 else ""
        if fault == "fails":
            self._send(request, b"no", 500)
        elif path == "/newbeacondetect":
            if fault != "loses":
                self._store(
                    parameters["user_address"], parameters["beacon_address"], int(time.time())
                )
            self._send(request, b"New Beacon Detection Added")
        elif path == "/extractbeacon":
            self._send(request, self._extract(parameters["staff_id"], fault))
        else:
            self._send(
                request, b'{"location": []}', 404 if path.startswith("/monitoring/") else 200
            )

    def _store(self, staff_id: str, mac: str, timestamp: int) -> None:
        level, location = PLACES[mac]
        self._stored.append(
            {"staff_id": staff_id, "level": level, "location": location, "timestamp": timestamp}
        )

    def _extract(self, staff_id: str, fault: str) -> bytes:
        rows = [dict(row) for row in self._stored if row["staff_id"] == staff_id]
        rows.sort(key=lambda row: -int(row["timestamp"]))
        for row in rows:
            del row["staff_id"]
        if fault == "drops":
            rows = rows[:-1]
        elif fault == "reorders" and len(rows) > 1:
            rows[0], rows[-1] = rows[-1], rows[0]
        elif fault == "moves" and rows:
            rows[3]["location"] = "elsewhere"
        return json.dumps({"location": rows}).encode()

    def _send(self, request: Any, body: bytes, status: int = 200) -> None:
        request.send_response_only(status)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(body)
