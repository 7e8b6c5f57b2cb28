"""HTTP/2 on the TLS port: faster for browsers, and no way around a limit."""

import contextlib
import re
import signal
import statistics
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from gateway.render import Config, ConfigError, render, template
from scripts.processes import ROOT
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.gateway.conftest import OPEN, SLOW_SECONDS, Gateway
from tests.gateway.http2 import Http2

TLS = Config(tls_certificate="c", tls_key="k", tls_listen="127.0.0.1:8443 127.0.0.2:8443")


@pytest.fixture
def gateway(make_gateway: Callable[..., Gateway], tmp_path: Path) -> Gateway:
    subprocess.run([ROOT / "scripts" / "certificate", tmp_path / "tls"], check=True)
    return make_gateway(
        tls_certificate=str(tmp_path / "tls" / "certificate.pem"),
        tls_key=str(tmp_path / "tls" / "key.pem"),
        tls_listen=f"127.0.0.1:{free_port()}",
        internal_listen=f"127.0.0.1:{free_port()}",
    ).start()


@pytest.fixture
def connect(gateway: Gateway) -> Iterator[Callable[..., Http2]]:
    """Return a function that connects to the gateway."""
    port = int(gateway.settings["tls_listen"].split(":")[1])
    with contextlib.ExitStack() as opened:
        yield lambda *a, **k: opened.enter_context(contextlib.closing(Http2(port, *a, **k)))


@pytest.mark.parametrize(
    ("nginx", "lines"),
    [
        (
            "nginx version: nginx/1.22.1",
            ["listen 127.0.0.1:8443 ssl http2", "listen 127.0.0.2:8443 ssl http2"],
        ),
        (
            "nginx version: nginx/1.25.0 (x)",
            ["listen 127.0.0.1:8443 ssl http2", "listen 127.0.0.2:8443 ssl http2"],
        ),
        (
            "nginx version: nginx/1.26.3",
            ["listen 127.0.0.1:8443 ssl", "listen 127.0.0.2:8443 ssl", "http2 on"],
        ),
    ],
)
def test_it_is_said_as_the_installed_nginx_understands_it(nginx: str, lines: list[str]) -> None:
    text = render(TLS, template(), nginx)
    matching = [
        line.strip() for line in text.splitlines() if "8443 ssl" in line or "http2 on" in line
    ]
    assert [line.split(" sndbuf")[0].rstrip(";") for line in matching] == lines
    for config in (Config(), TLS._replace(http2="off")):
        assert "http2" not in re.sub("http2_.*", "", render(config, template(), nginx))
    with pytest.raises(ConfigError, match="GATEWAY_HTTP2"):
        Config.from_environment({"GATEWAY_HTTP2": "yes"})


def test_many_requests_share_one_connection(
    gateway: Gateway, connect: Callable[..., Http2]
) -> None:
    client = connect()
    client.authority = "way.example"
    for upstream in gateway.ingest:
        upstream.delay_seconds = 0.2
    streams = [client.ask("/newbeacondetect?a=1", "POST") for _ in range(50)]
    assert client.answered(*streams) == [200] * 50
    sent = [request for upstream in gateway.ingest for request in upstream.requests]
    assert {request[2]["host"] for request in sent} == {"way.example"}
    responses = [client.headers[stream] for stream in streams]
    assert {head["strict-transport-security"] for head in responses} == {"max-age=31536000"}
    assert len({head["x-request-id"] for head in responses}) == 50
    assert len({line["client"] for line in gateway.logged()}) == 1


def test_the_circuit_opens_for_streams_as_for_connections(
    gateway: Gateway, connect: Callable[..., Http2]
) -> None:
    for upstream in gateway.ingest:
        upstream.close()
    client = connect()
    for path in ("/newbeacondetect", "/extractbeacon", "/retrieveformonitoring"):
        stream = client.ask(path)
        assert client.answered(stream) == [503]
        assert client.bodies[stream].decode() == OPEN
        assert client.headers[stream]["x-circuit-state"] == "open"


def test_a_stream_takes_a_place(gateway: Gateway, connect: Callable[..., Http2]) -> None:
    for upstream in gateway.ingest:
        upstream.delay_seconds = 2
    client, other = connect(), connect("127.0.0.2")
    streams = [client.ask("/extractbeacon") for _ in range(60)]
    assert Counter(client.answered(*streams)) == {200: 52, 429: 8}
    for upstream in gateway.ingest:
        upstream.delay_seconds = 7  # they hold their places for long, also on a busy machine
    streams = [client.ask("/extractbeacon") for _ in range(52)]
    client.flush()
    eventually(lambda: sum(len(upstream.requests) for upstream in gateway.ingest) == 104)
    others = [other.ask("/extractbeacon") for _ in range(12)]
    assert Counter(other.answered(*others)) == {200: 10, 503: 2}  # 62 places in all
    assert client.answered(*streams) == [200] * 52


def test_more_streams_than_are_allowed_are_refused_one_by_one(
    gateway: Gateway, connect: Callable[..., Http2]
) -> None:
    client = connect()
    client.answered(client.ask("/healthz"))
    assert client.engine.remote_settings.max_concurrent_streams == 64


@pytest.mark.long
def test_requests_and_resets_in_a_row_harm_nobody(
    gateway: Gateway, connect: Callable[..., Http2]
) -> None:
    worker = gateway.worker().pid
    enough = threading.Event()
    waits: list[float] = []

    def others() -> None:
        while not enough.is_set():
            waits.append(gateway.timed("GET", "/healthz").seconds)

    watching = threading.Thread(target=others)
    watching.start()
    began, opened, ended = gateway.worker().cpu_times().user, 0, 0
    for _ in range(20):
        client = connect("127.0.0.3")
        try:
            for _ in range(100):
                for _ in range(20):
                    stream = client.ask("/newbeacondetect")
                    client.engine.reset_stream(stream, ErrorCodes.CANCEL)
                    opened += 1
                client.flush()
            while client.read(5):
                pass
            ended += client.ended_by_gateway
        except OSError:
            ended += 1
    enough.set()
    watching.join()
    spent = gateway.worker().cpu_times().user - began
    print(f"{opened} streams: {spent:.2f} s of the gateway, others at most {max(waits):.2f} s")
    assert opened > 10_000
    assert ended == 20  # by the gateway, each
    assert gateway.worker().pid == worker
    assert sum(len(upstream.requests) for upstream in gateway.ingest) < 5000
    # The longest waits are for this process, which is busy itself.
    assert statistics.median(waits) < SLOW_SECONDS


def test_a_reload_ends_a_connection_after_its_streams(
    gateway: Gateway, connect: Callable[..., Http2]
) -> None:
    for upstream in gateway.ingest:
        upstream.answer(200, b"x" * 4)
        upstream.fault = "drip"  # for 2 s, and never silent for long
    client, old = connect(), gateway.worker()
    streams = [client.ask("/newbeacondetect") for _ in range(20)]
    client.flush()
    eventually(lambda: sum(len(upstream.requests) for upstream in gateway.ingest) == 20)
    gateway.process.send_signal(signal.SIGHUP)
    assert client.answered(*streams) == [200] * 20
    while client.read():
        pass
    assert client.ended_by_gateway
    old.wait(30)
    client = connect()
    assert client.answered(client.ask("/healthz")) == [200]
