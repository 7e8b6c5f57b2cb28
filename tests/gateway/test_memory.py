"""The gateway inside its 32 MiB, with a real limit where we may set one."""

import compileall
import contextlib
import os
import socket
import ssl
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from scripts.processes import ROOT
from scripts.processes.control_groups import Limits
from scripts.processes.limited_group import available
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway
from tests.gateway.http2 import Http2
from tests.gateway.test_busy import drip, dripping

pytestmark = pytest.mark.long

LIMIT_BYTES = 32 * 2**20
HTTP2_LIMIT_BYTES = 40 * 2**20
ALLOWED = 0.9


def memory_bytes(gateway: Gateway) -> int:
    """Return the anonymous memory of the start program and all of nginx.

    It is what cannot be given back. Programs and libraries can: how much of them counts for one
    process depends on who else happens to run them (5 MiB more or less here).
    """
    parent = psutil.Process(gateway.process.pid)
    rollups = [
        Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        for process in [parent, *parent.children(recursive=True)]
    ]
    return sum(int(text.split("Pss_Anon:")[1].split()[0]) * 1024 for text in rollups)


class Clients:
    """TLS connections to the gateway that stay."""

    def __init__(self, gateway: Gateway, held: contextlib.ExitStack) -> None:
        self._context = ssl.create_default_context(cafile=gateway.settings["tls_certificate"])
        self._host, _, self._port = gateway.settings["tls_listen"].partition(":")
        self._held = held

    def connect(self, receive_bytes: int = 0, address: str = "127.0.0.1") -> ssl.SSLSocket:
        plain = self._held.enter_context(socket.socket())
        if receive_bytes:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        plain.settimeout(30)
        plain.bind((address, 0))
        plain.connect((self._host, int(self._port)))
        secure = self._context.wrap_socket(plain, server_hostname="127.0.0.1")
        return self._held.enter_context(secure)


def start(make_gateway: Callable[..., Gateway], tmp_path: Path, http2: str, limit: int) -> Gateway:
    subprocess.run([ROOT / "scripts" / "certificate", tmp_path / "tls"], check=True)
    return make_gateway(
        tls_certificate=str(tmp_path / "tls" / "certificate.pem"),
        tls_key=str(tmp_path / "tls" / "key.pem"),
        tls_listen=f"127.0.0.1:{free_port()}",
        internal_listen=f"127.0.0.1:{free_port()}",
        http2=http2,
    ).start(limits=Limits(None, limit) if available() else None)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile the start program as the image does: from source it takes 0.7 MiB more."""
    for folder in ("common", "gateway"):
        assert compileall.compile_dir(ROOT / folder, quiet=1)


@pytest.fixture
def secure(make_gateway: Callable[..., Gateway], tmp_path: Path) -> Gateway:
    """Return the gateway of the container."""
    return start(make_gateway, tmp_path, "off", LIMIT_BYTES)


@pytest.fixture
def http2(make_gateway: Callable[..., Gateway], tmp_path: Path) -> Gateway:
    return start(make_gateway, tmp_path, "on", HTTP2_LIMIT_BYTES)


def check(gateway: Gateway, worker: int, limit_bytes: int = LIMIT_BYTES) -> None:
    """The gateway is inside its limit, and nobody had to be killed for that."""
    used = memory_bytes(gateway)
    print(f"{used / 2**20:.1f} MiB")
    assert used < limit_bytes * ALLOWED
    if gateway.process.group:
        assert gateway.process.group.usage().killed == 0
    assert gateway.worker().pid == worker
    assert gateway.timed("GET", "/healthz").status == 200


def test_500_idle_tls_connections(secure: Gateway) -> None:
    worker = secure.worker().pid
    with contextlib.ExitStack() as held:
        clients = Clients(secure, held)
        idle = [clients.connect() for _ in range(500)]
        check(secure, worker)
        # The last: on a busy machine the first may have waited too long for its header.
        idle[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle[-1].recv(100).startswith(b"HTTP/1.1 200")


def test_300_slow_readers_of_a_long_history(secure: Gateway) -> None:
    history = os.urandom(1_000_000).hex().encode()  # 2 MB that hardly compress: the worst to hold
    for upstream in secure.ingest:
        upstream.answer(200, history, {"Content-Type": "application/json"})
    worker = secure.worker().pid
    with contextlib.ExitStack() as held:
        clients = Clients(secure, held)
        for number in range(300):
            encoding = b"gzip" if number % 2 else b"identity"
            asked = b"GET /extractbeacon HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %b\r\n\r\n"
            clients.connect(4096).sendall(asked % encoding)
        eventually(lambda: sum(len(upstream.requests) for upstream in secure.ingest) == 52)
        eventually(lambda: Counter(line["status"] for line in secure.logged())["429"] == 300 - 52)
        time.sleep(2)  # the rest of what will be buffered
        check(secure, worker)
    answered = Counter(line["status"] for line in secure.logged())
    assert answered["429"] == 300 - 52


def test_200_slow_readers_of_one_large_export(secure: Gateway) -> None:
    export = os.urandom(4_000_000).hex().encode()
    for upstream in secure.ingest:
        upstream.answer(200, export, {"Content-Type": "text/csv"})
    worker = secure.worker().pid
    with contextlib.ExitStack() as held:
        clients = Clients(secure, held)
        for _ in range(200):
            asked = b"GET /api/v1/staff/7/detections?format=csv HTTP/1.1\r\nHost: localhost\r\n"
            clients.connect(4096).sendall(asked + b"Accept-Encoding: gzip\r\n\r\n")
        eventually(lambda: Counter(line["status"] for line in secure.logged())["429"] == 200 - 52)
        time.sleep(2)  # the rest of what will be buffered
        check(secure, worker)
        other = clients.connect(address="127.0.0.2")
        other.sendall(b"GET /extractbeacon HTTP/1.1\r\nHost: x\r\n\r\n")
        assert other.recv(100).startswith(b"HTTP/1.1 200")


# By path: the places of all clients, and those of one.
SLOW = {
    b"/extractbeacon": (62, 52),
    b"/api/v1/staff": (64, 56),
    b"/retrieveformonitoring": (50, 44),
}


def test_all_places_of_readers_taken(secure: Gateway) -> None:
    for upstream in secure.ingest:
        upstream.answer(200, os.urandom(1_000_000).hex().encode(), {"Content-Type": "text/csv"})
    worker = secure.worker().pid
    with contextlib.ExitStack() as held:
        clients = Clients(secure, held)
        for path, (places, own) in SLOW.items():
            # A compressed short answer fits the kernel's buffer, and is not held by the gateway.
            encoding = b"gzip" if path == b"/extractbeacon" else b"identity"
            asked = b"GET %b HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: %b\r\n\r\n" % (
                path,
                encoding,
            )
            for number in range(places):
                clients.connect(4096, f"127.0.0.{2 + number // own}").sendall(asked)

            def refused(asked: bytes = asked) -> bool:
                with contextlib.ExitStack() as once:
                    late = Clients(secure, once).connect(4096, "127.0.0.9")
                    late.sendall(asked)
                    return late.recv(100).startswith(b"HTTP/1.1 503")

            eventually(refused)
        time.sleep(2)  # the rest of what will be buffered
        check(secure, worker)


@contextlib.contextmanager
def under_way(gateway: Gateway, ask: Callable[[contextlib.ExitStack, int], None]) -> Iterator[None]:
    """Have 512 detections under way; `ask` sends them, from 127.0.0.N on.

    The gateway waits 2.5 s for each byte: where a stall of this machine ended some, once more, from
    other addresses.
    """
    drip(gateway)
    for first in range(1, 20, 2):
        with contextlib.ExitStack() as held:
            ask(held, first)
            try:
                eventually(lambda: dripping(gateway) == 512, 10)
            except TimeoutError:
                pass
            else:
                yield
                return
        # The gateway waits for an answer also when nobody else does.
        for upstream in gateway.ingest:
            upstream.close()
            upstream.reopen()
        eventually(lambda: not dripping(gateway))
        time.sleep(1.5)  # until they count as alive again
    pytest.fail("never were there 512 at once")


def test_512_detections_under_way(secure: Gateway) -> None:
    def ask(held: contextlib.ExitStack, first: int) -> None:
        clients = Clients(secure, held)
        for number in range(512):
            connection = clients.connect(0, f"127.0.0.{first + number // 400}")
            connection.sendall(b"GET /newbeacondetect?a=1 HTTP/1.1\r\nHost: x\r\n\r\n")

    worker = secure.worker().pid
    with under_way(secure, ask):
        check(secure, worker)


def connect_http2(
    gateway: Gateway, held: contextlib.ExitStack, address: str = "127.0.0.1", *, greedy: bool = True
) -> Http2:
    port = int(gateway.settings["tls_listen"].split(":")[1])
    return held.enter_context(contextlib.closing(Http2(port, address, greedy=greedy)))


def test_500_idle_http2_connections(http2: Gateway) -> None:
    worker = http2.worker().pid
    with contextlib.ExitStack() as held:
        for number in range(500):
            one = connect_http2(http2, held)
            if number % 2:  # used as well, at once: on a busy machine it would be too old later
                assert one.answered(one.ask("/healthz")) == [200]
        check(http2, worker, HTTP2_LIMIT_BYTES)


def test_all_places_of_readers_taken_over_http2(http2: Gateway) -> None:
    for upstream in http2.ingest:
        upstream.answer(200, os.urandom(1_000_000).hex().encode(), {"Content-Type": "text/csv"})
    worker = http2.worker().pid
    with contextlib.ExitStack() as held:
        for path, (places, own) in SLOW.items():
            for number in range(places):  # a connection each is the most memory
                address = f"127.0.0.{2 + number // own}"
                client = connect_http2(http2, held, address, greedy=False)
                gzip = (("accept-encoding", "gzip"),) if path == b"/extractbeacon" else ()
                client.ask(path.decode(), more=gzip)
                client.flush()

            def refused(path: bytes = path) -> bool:
                with contextlib.ExitStack() as once:
                    late = connect_http2(http2, once, "127.0.0.9")
                    return late.answered(late.ask(path.decode())) == [503]

            eventually(refused)
        time.sleep(2)  # the rest of what will be buffered
        check(http2, worker, HTTP2_LIMIT_BYTES)


@pytest.mark.parametrize("streams", [1, 64])
def test_512_detections_under_way_over_http2(http2: Gateway, streams: int) -> None:
    def ask(held: contextlib.ExitStack, first: int) -> None:
        for number in range(512 // streams):
            client = connect_http2(http2, held, f"127.0.0.{first + number * streams // 384}")
            for _ in range(streams):
                client.ask("/newbeacondetect?a=1")
            client.flush()

    worker = http2.worker().pid
    with under_way(http2, ask):
        check(http2, worker, HTTP2_LIMIT_BYTES)
