"""Certificates by themselves: a real authority (pebble), the real client, real nginx."""

import contextlib
import http.client
import os
import re
import shutil
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.acme import Held
from gateway.render import Config, ConfigError
from scripts.processes import ROOT
from scripts.processes.ports import free_port
from scripts.processes.process import Process
from scripts.processes.waiting import eventually
from tests.gateway.authority import Authority
from tests.gateway.conftest import Gateway
from tests.needs import need

pytestmark = pytest.mark.long

NAMES = "waymark.example www.waymark.example"
PROOF = "/.well-known/acme-challenge/"
TOKEN = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0"


@pytest.fixture
def gateway(make_gateway: Callable[..., Gateway], tmp_path: Path) -> Gateway:
    """Return a gateway that knows its names and has no certificate yet."""
    return make_gateway(
        tls_names=NAMES,
        acme_folder=str(tmp_path / "acme"),
        tls_listen=f"127.0.0.1:{free_port()}",
        internal_listen=f"127.0.0.1:{free_port()}",
    ).start()


@pytest.fixture
def run_client(gateway: Gateway, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Return a function that starts what asks the authority."""
    need("dehydrated")
    with contextlib.ExitStack() as started:

        def run(directory: str, ca_file: object) -> Process:
            settings = {f"GATEWAY_{name.upper()}": v for name, v in gateway.settings.items()}
            settings |= {"ACME_DIRECTORY": directory, "ACME_CA_FILE": str(ca_file)}
            process = Process(
                "acme",
                [sys.executable, str(ROOT / "gateway" / "acme.py")],
                tmp_path / "acme.log",
                environment=os.environ | settings | {"ACME_RETRY_SECONDS": "1"},
            )
            return started.enter_context(process)

        yield run


@pytest.fixture
def make_authority(gateway: Gateway, tmp_path: Path) -> Iterator[Callable[..., Authority]]:
    made: list[Authority] = []

    def make(life_seconds: int, refused_percent: int = 0) -> Authority:
        port = gateway.address[1]
        made.append(Authority(tmp_path / "authority", port, life_seconds, refused_percent))
        made[-1].start()
        return made[-1]

    yield make
    for authority in made:
        authority.stop()


def port(gateway: Gateway) -> int:
    return int(gateway.settings["tls_listen"].split(":")[1])


def connect(gateway: Gateway) -> http.client.HTTPSConnection:
    """Return a connection that does not know the authority."""
    anybody = ssl._create_unverified_context()
    return http.client.HTTPSConnection("127.0.0.1", port(gateway), timeout=30, context=anybody)


def served(gateway: Gateway) -> str:
    """Return the certificate that the gateway shows now; "" when it has no TLS yet."""
    try:
        return ssl.get_server_certificate(("127.0.0.1", port(gateway)), timeout=30)
    except ConnectionRefusedError:
        return ""


def redirected(gateway: Gateway) -> str:
    answer = gateway.request("GET", "/x", allow_redirects=False)
    return answer.headers.get("Location", "")


class Clients(threading.Thread):
    """Send one request after the other until it is enough, and count what became of them."""

    def __init__(self, gateway: Gateway, *, stay: bool) -> None:
        super().__init__()
        self._gateway, self.stay = gateway, stay
        self.enough = threading.Event()
        self.statuses: list[int] = []
        self.connections = 0

    def run(self) -> None:
        connection = connect(self._gateway)
        while not self.enough.is_set():
            fresh = connection.sock is None
            self.connections += fresh
            try:
                connection.request("POST", "/newbeacondetect")
                answer = connection.getresponse()
                answer.read()
                self.statuses.append(answer.status)
            except (ConnectionError, ssl.SSLEOFError):
                # A server may close a connection between two requests, and a client then sends
                # again (RFC 9112, 9.3.1). Nothing else may fail.
                self.statuses += [0] * fresh
                connection.close()
            if not self.stay:
                connection.close()
            time.sleep(0.005)
        connection.close()


def test_the_first_certificate_and_the_next_reach_clients_that_notice_nothing(
    gateway: Gateway, run_client: Callable[..., Process], make_authority: Callable[..., Authority]
) -> None:
    early = gateway.request("GET", "/monitoring", allow_redirects=False)
    assert (early.status_code, early.headers["Retry-After"]) == (503, "5")
    assert "no certificate yet" in early.text
    assert gateway.request("GET", "/healthz").status_code == 200
    assert served(gateway) == ""
    authority = make_authority(15, refused_percent=2)
    client = run_client(authority.directory, authority.ca_file)
    first = eventually(lambda: served(gateway), 60)
    # The worker from before the certificate may take a last connection or two.
    eventually(lambda: redirected(gateway).startswith("https://127.0.0.1:"))

    clients = [Clients(gateway, stay=number % 2 == 0) for number in range(6)]
    idle = connect(gateway)
    idle.connect()
    for server in clients:
        server.start()
    for upstream in gateway.ingest:
        upstream.delay_seconds = 0.3  # so that many are being answered at any time
    next_one = eventually(lambda: served(gateway) not in (first, "") and served(gateway), 60)
    time.sleep(1)  # the old worker is ending
    for server in clients:
        server.enough.set()
    for server in clients:
        server.join()
        assert set(server.statuses) == {200}
        assert len(server.statuses) > 20
    # Those that stay: one connection before, one after.
    assert [server.connections for server in clients if server.stay] == [2, 2, 2]
    assert idle.sock.recv(1) == b""  # closed in order, not broken off
    idle.close()

    held = Held.read(Path(gateway.settings["acme_folder"], "certs", "waymark", "fullchain.pem"))
    assert held
    assert held.names == set(NAMES.split())
    assert f"good until {held.until()}" in client.log
    assert next_one


def test_without_its_authority_the_gateway_keeps_what_it_has(
    gateway: Gateway,
    run_client: Callable[..., Process],
    make_authority: Callable[..., Authority],
    tmp_path: Path,
) -> None:
    nobody = f"https://127.0.0.1:{free_port()}/dir"
    client = run_client(nobody, "")

    def pauses() -> list[int]:
        return [int(seconds) for seconds in re.findall(r"Next try in (\d+) s", client.log)]

    eventually(lambda: len(pauses()) >= 2)
    first, second = pauses()[:2]
    assert first < second
    assert "the authority does not answer" in client.log
    assert gateway.request("GET", "/healthz").status_code == 200
    client.stop()

    authority = make_authority(3600)
    client = run_client(authority.directory, authority.ca_file)
    first_one = eventually(lambda: served(gateway), 60)
    eventually(lambda: "good until" in client.log)
    client.stop()
    authority.stop()

    # Another name is needed at once, and nobody is there to give it; who comes back has forgotten
    # our account.
    gateway.settings["tls_names"] = f"{NAMES} third.example"
    client = run_client(authority.directory, authority.ca_file)
    eventually(lambda: "what there is holds until" in client.log.split("good until")[-1])
    assert served(gateway) == first_one
    assert client.running()
    authority.start()
    eventually(lambda: served(gateway) != first_one, 60)
    held = Held.read(Path(gateway.settings["acme_folder"], "certs", "waymark", "fullchain.pem"))
    assert held
    assert "third.example" in held.names


def test_an_authority_that_cannot_reach_us_is_told_of(
    gateway: Gateway, run_client: Callable[..., Process], make_authority: Callable[..., Authority]
) -> None:
    authority = make_authority(3600)
    shutil.rmtree(gateway.settings["acme_folder"], ignore_errors=True)
    gateway.process.stop(30)
    client = run_client(authority.directory, authority.ca_file)
    eventually(lambda: "its port 80 to the gateway's plain port" in client.log, 60)


def test_proofs_and_nothing_else_are_served_while_the_port_redirects(
    gateway: Gateway, tmp_path: Path
) -> None:
    proofs = tmp_path / "acme" / "challenges"
    proofs.mkdir(parents=True)
    (proofs / TOKEN).write_text("proof")
    (proofs / f"{TOKEN}.key").write_text("secret")
    (proofs / "folder-of-16-letters").mkdir()
    (tmp_path / "acme" / "account_key_of_16").write_text("secret")
    proof = gateway.request("GET", PROOF + TOKEN, allow_redirects=False)
    assert (proof.status_code, proof.text) == (200, "proof")
    assert proof.headers["Content-Type"] == "text/plain"
    assert "Strict-Transport-Security" not in proof.headers
    assert gateway.request("POST", PROOF + TOKEN, allow_redirects=False).status_code == 405
    for other in (
        "",
        TOKEN[:-1],
        f"{TOKEN}.key",
        f"{TOKEN}/",
        f"{TOKEN}%00",
        f"{TOKEN}%2f",
        "../account_key_of_16",
        "..%2faccount_key_of_16",
        "%2e%2e/account_key_of_16",
        "..%5caccount_key_of_16",
        "folder-of-16-letters/",
        "x" * 300,
    ):
        with socket.create_connection(gateway.address, timeout=30) as raw:  # as it is written here
            raw.sendall(b"GET %b HTTP/1.0\r\nHost: x\r\n\r\n" % (PROOF + other).encode())
            answer = b"".join(iter(lambda: raw.recv(4096), b""))
        assert re.match(rb"HTTP/1.1 (404|503|400) ", answer), (other, answer)
        assert b"secret" not in answer


def test_settings_that_contradict_each_other() -> None:
    for wrong, words in [
        ({"GATEWAY_TLS_NAMES": "a.example", "GATEWAY_TLS_CERTIFICATE": "c"}, "neither"),
        (
            {"GATEWAY_TLS_NAMES": "a.b", "GATEWAY_TLS_CERTIFICATE": "c", "GATEWAY_TLS_KEY": "k"},
            "not both",
        ),
        ({"GATEWAY_TLS_NAMES": "a.example -x;y"}, "no host name"),
        ({"GATEWAY_TLS_NAMES": "localhost"}, "no host name"),
    ]:
        with pytest.raises(ConfigError, match=words):
            Config.from_environment(wrong)
