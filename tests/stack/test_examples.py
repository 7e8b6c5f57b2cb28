"""The phones of `examples/`, while parts of a stack and the phones are killed and frozen.

What a phone said is safe, the database holds, once.
"""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from scripts.processes.waiting import eventually
from tests.phones import BEACON
from tests.stack.conftest import Stack, kill_tree, running_stack
from tests.stack.test_verdict import frozen

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PHONES = {"python": [sys.executable, "phone.py"], "javascript": ["node", "phone.mjs"]}
MORE = 15  # detections between two faults


@pytest.fixture(scope="module")
def office(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack that these tests break."""
    with running_stack(root, tmp_path_factory.mktemp("examples")) as stack:
        yield stack


class Phone:
    """One of the examples, on its queue; `heard` are the event ids that it said are safe."""

    def __init__(self, url: str, command: list[str], queue: Path) -> None:
        program, script = command
        self._command = [program, str(EXAMPLES / script), url, f"phone-{script}", str(queue)]
        self.heard: list[str] = []
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        streams = (self._process.stdout, self._keep), (self._process.stderr, lambda _: None)
        self._readers = [
            threading.Thread(target=lambda s=stream, f=to: [f(line) for line in s])
            for stream, to in streams
        ]
        for reader in self._readers:
            reader.start()

    def _keep(self, line: bytes) -> None:
        if line.endswith(b"\n"):
            self.heard.append(line.decode().strip())

    def hear(self, count: int, line: str = f"{BEACON} -67") -> None:
        """Let it hear a beacon so many times, and wait until it has said that this is safe."""
        assert self._process.stdin
        wanted = len(self.heard) + count
        self._process.stdin.write(f"{line}\n".encode() * max(count, 1))
        self._process.stdin.flush()
        eventually(lambda: len(self.heard) >= wanted, 30)

    def kill(self) -> None:
        """Kill -9 it in the middle of its work."""
        self._process.kill()
        self._end()

    def finish(self) -> None:
        """Let it hear nothing more, and wait until it has sent all."""
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(180) == 0
        self._end()

    def _end(self) -> None:
        for reader in self._readers:
            reader.join()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@pytest.mark.parametrize("language", PHONES)
def test_a_phone_loses_nothing_and_doubles_nothing(
    office: Stack, tmp_path: Path, language: str
) -> None:
    phone = Phone(office.url, PHONES[language], tmp_path / "queue")
    for part in ("ingest-1", "ingest-2", "gateway", "mongod"):
        phone.hear(MORE)
        kill_tree(office.pids()[part])
        phone.hear(MORE)
        eventually(lambda: office.script("status").returncode == 0, 120)
        with frozen(office, part):
            phone.hear(MORE)
            phone.kill()
            phone.start()
            phone.hear(MORE)
        eventually(lambda: office.script("status").returncode == 0, 120)
    phone.finish()
    staff_id = f"phone-{PHONES[language][1]}"

    def stored() -> int:
        return len(office.history(staff_id))

    eventually(lambda: stored() == len(phone.heard), 120)  # what a spool took comes later
    assert len(set(phone.heard)) == len(phone.heard) == 16 * MORE
    assert (tmp_path / "queue").exists()


class Oddities(BaseHTTPRequestHandler):
    """What stands between a phone and Waymark, and then Waymark with one item that it rejects."""

    asked: ClassVar[list[list[str]]] = []  # event ids of each request

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ids = [item["event_id"] for item in body["detections"]]
        self.asked.append(ids)
        unavailable = [{"index": n, "status": "unavailable"} for n in range(len(ids))]
        stored = [{"index": n, "status": "stored"} for n in range(len(ids))]
        odd: list[tuple[int, object]] = [
            (200, "<html>Accept our terms</html>"),
            (200, {"results": 5}),
            (413, {}),
            (503, {"results": [stored[0], *unavailable[1:]]}),
            (200, {"results": [stored[0] | {"status": "rejected", "errors": []}, *stored[1:]]}),
        ]
        at = len(self.asked) - 1
        status, answer = odd[at] if at < len(odd) else (200, {"results": stored})
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("language", PHONES)
def test_a_phone_is_not_led_astray(tmp_path: Path, language: str) -> None:
    Oddities.asked.clear()
    with HTTPServer(("127.0.0.1", 0), Oddities) as server:
        threading.Thread(target=server.serve_forever).start()
        phone = Phone(f"http://127.0.0.1:{server.server_port}", PHONES[language], tmp_path / "q")
        for line in ("", "C2A628384B08", "C2A628384B08 loud"):
            phone.hear(0, line)  # no detection
        phone.hear(4)
        phone.hear(1, f"{BEACON} -63.47")
        phone.finish()
        server.shutdown()
    sent = [event for ids in Oddities.asked for event in ids]
    assert set(sent) == set(phone.heard)
    assert len(Oddities.asked) < 12  # it paused between them
    after = Oddities.asked[4:]
    assert Oddities.asked[3][0] not in [event for ids in after for event in ids]
    aside = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert Oddities.asked[4][0].encode() in aside
