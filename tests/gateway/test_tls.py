"""TLS as soon as there is a certificate."""

import itertools
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from gateway.render import Config
from scripts.native.up import public_address
from scripts.processes import ROOT
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway

# In place of a program: kills who calls it, before the Nth call of any; else it is the program.
DIES = """#!/bin/sh
left=$(($(cat "$STEPS") - 1))
echo $left >"$STEPS"
[ $left -ne 0 ] || { kill -9 $PPID; exit; }
PATH="${PATH#*:}" exec "${0##*/}" "$@"
"""
CERTIFIED = {"tls_certificate": "/tls of ours/c.pem", "tls_key": "/tls of ours/k.pem"}
V2, V3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def certificate(folder: Path) -> None:
    subprocess.run([ROOT / "scripts" / "certificate", folder, "10.1.2.3"], check=True)


def test_the_printed_variables_survive_a_shell(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    folder = 'it\'s a $HOME & "more"'
    script = 'eval "$("$0" "$1")"; cd /; cat "$GATEWAY_TLS_CERTIFICATE" "$GATEWAY_TLS_KEY"'
    command = ["bash", "-c", script, str(ROOT / "scripts" / "certificate"), folder]
    printed = subprocess.run(command, cwd=tmp_path / "here", check=True, capture_output=True)
    assert printed.stdout.count(b"-----BEGIN") == 2


@pytest.mark.parametrize(("option", "status"), [("--help", 0), ("-h", 0), ("--folder", 1)])
def test_an_option_makes_no_folder(tmp_path: Path, option: str, status: int) -> None:
    command = [str(ROOT / "scripts" / "certificate"), option]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == status
    assert ("./scripts/certificate [FOLDER [HOST...]]" in done.stdout) == (status == 0)
    assert ("there is no option --folder" in done.stderr) == (status == 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "address", "trust"),
    [
        ({}, "http://127.0.0.1:8080", ""),
        (CERTIFIED, "https://127.0.0.1:8443", "--cacert '/tls of ours/c.pem' "),
        (CERTIFIED | {"tls_listen": "0.0.0.0:443"}, "https://127.0.0.1", None),
        (CERTIFIED | {"tls_listen": "[::1]:8443"}, "https://[::1]:8443", None),
        (CERTIFIED | {"hostnames": "way.example b"}, "https://way.example:8443", None),
        (CERTIFIED | {"tls_names": "a.example"}, "https://a.example:8443", ""),
    ],
)
def test_up_tells_the_address_that_people_use(
    settings: dict[str, str], address: str, trust: str | None
) -> None:
    address_and_trust = public_address(Config(**settings), "http://127.0.0.1:8080")
    assert address_and_trust[0] == address
    assert trust is None or address_and_trust[1] == trust


@pytest.mark.long
def test_killed_before_any_step_the_next_run_makes_a_pair(tmp_path: Path) -> None:
    programs, steps = tmp_path / "programs", tmp_path / "steps"
    programs.mkdir()
    for name in ("openssl", "mkdir", "chmod", "chown", "sync", "mv", "rmdir"):
        (programs / name).write_text(DIES)
        (programs / name).chmod(0o755)
    dying = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "STEPS": str(steps)}
    for step in itertools.count(1):
        folder = tmp_path / f"tls-{step}"
        steps.write_text(f"{step}")
        command = [ROOT / "scripts" / "certificate", folder]
        killed = subprocess.run(command, env=dying, capture_output=True, check=False)
        assert killed.returncode in (0, -signal.SIGKILL)
        if not (folder / "key.pem").exists():
            certificate(folder)
        ssl.create_default_context().load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        rights = {file.name: file.stat().st_mode & 0o777 for file in folder.glob("*.pem")}
        assert rights == {"certificate.pem": 0o644, "key.pem": 0o600}
        if not killed.returncode:
            break
    assert step > 7


@pytest.fixture
def secure(make_gateway: Callable[..., Gateway], tmp_path: Path) -> Gateway:
    certificate(tmp_path / "tls")
    gateway = make_gateway(
        tls_certificate=str(tmp_path / "tls" / "certificate.pem"),
        tls_key=str(tmp_path / "tls" / "key.pem"),
        tls_listen=f"127.0.0.1:{free_port()}",
        internal_listen=f"127.0.0.1:{free_port()}",
    )
    return gateway.start()


def served(gateway: Gateway) -> str:
    """Return the certificate that the gateway shows now."""
    host, port = gateway.settings["tls_listen"].split(":")
    return ssl.get_server_certificate((host, int(port)))


def context(gateway: Gateway, version: ssl.TLSVersion) -> ssl.SSLContext:
    """Return a client that trusts the development certificate and checks its name."""
    context = ssl.create_default_context(cafile=gateway.settings["tls_certificate"])
    context.minimum_version = context.maximum_version = version
    return context


def wrap(
    gateway: Gateway, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> ssl.SSLSocket:
    host, port = gateway.settings["tls_listen"].split(":")
    plain = socket.create_connection((host, int(port)), timeout=30)
    return context.wrap_socket(plain, server_hostname="127.0.0.1", session=session)


def ask(connection: ssl.SSLSocket, host: str = "x") -> bytes:
    head = f"GET /newbeacondetect HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    connection.sendall(head.encode())
    received = b""
    while more := connection.recv(4096):
        received += more
    return received


@pytest.mark.parametrize("version", [V2, V3])
def test_sessions_are_resumed(secure: Gateway, version: ssl.TLSVersion) -> None:
    client = context(secure, version)
    with wrap(secure, client) as first:
        answer = ask(first)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.count(b"Strict-Transport-Security: max-age=31536000\r\n") == 1
        session = first.session
    with wrap(secure, client, session) as second:
        assert ask(second).startswith(b"HTTP/1.1 200")
        assert second.session_reused


@pytest.mark.parametrize("host", ["127.0.0.1:8443", "localhost", "way.example:8443"])
def test_where_plain_ports_are_used_tls_is_not_pinned(secure: Gateway, host: str) -> None:
    with wrap(secure, context(secure, V3)) as connection:
        answer = ask(connection, host)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"Strict-Transport-Security" not in answer


def test_older_versions_are_refused(secure: Gateway) -> None:
    port = secure.settings["tls_listen"].split(":")[1]
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_1"]
    command += ["-cipher", "ALL:@SECLEVEL=0"]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert b"protocol version" in done.stderr


# With forward secrecy, and authenticated: Mozilla's "intermediate" without its DHE.
SUITES = {
    f"ECDHE-{{}}-{cipher}"
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
}


@pytest.mark.long
@pytest.mark.parametrize("key", ["ECDSA", "RSA"])
def test_the_suites_of_tls_1_2_are_those_and_no_others(
    make_gateway: Callable[..., Gateway], tmp_path: Path, key: str
) -> None:
    folder = tmp_path / "tls"
    if key == "ECDSA":
        certificate(folder)
    else:
        folder.mkdir()
        options = ["-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=localhost"]
        files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
        subprocess.run(["openssl", "req", *options, *files], check=True, capture_output=True)
    port = free_port()
    make_gateway(
        tls_certificate=str(folder / "certificate.pem"),
        tls_key=str(folder / "key.pem"),
        tls_listen=f"127.0.0.1:{port}",
        internal_listen=f"127.0.0.1:{free_port()}",
    ).start()
    every = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    every.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    names = [cipher["name"] for cipher in every.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert {"AES128-SHA", f"ECDHE-{key}-AES128-SHA"} <= set(names)  # weak ones are tried
    assert {name for name in names if taken(port, name)} == {suite.format(key) for suite in SUITES}


def taken(port: int, suite: str) -> bool:
    """Tell whether the gateway makes a connection of TLS 1.2 with a suite; it gives no ticket."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = V2
    context.set_ciphers(f"{suite}:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        try:
            with context.wrap_socket(plain) as secure:
                # Its key would live as long as the process.
                assert secure.session is None or not secure.session.has_ticket
                return True
        except (ssl.SSLError, ConnectionError):
            return False


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_plain_port_only_redirects(secure: Gateway, method: str) -> None:
    port = secure.settings["tls_listen"].split(":")[1]
    answer = secure.request(method, "/newbeacondetect?a=1", allow_redirects=False)
    assert answer.status_code == 308
    assert answer.headers["Location"] == f"https://127.0.0.1:{port}/newbeacondetect?a=1"
    standard = secure.request("GET", "/x", allow_redirects=False, headers={"Host": "w.example"})
    assert standard.headers["Location"] == "https://w.example/x"
    assert "Strict-Transport-Security" not in answer.headers
    assert secure.ingest[0].requests == secure.ingest[1].requests == []
    assert secure.request("GET", "/healthz", allow_redirects=False).status_code == 200
    on_tls_port = requests.get(f"http://127.0.0.1:{port}/y", allow_redirects=False, timeout=30)
    assert on_tls_port.headers["Location"] == f"https://127.0.0.1:{port}/y"


def test_the_monitoring_service_has_a_plain_way_in(secure: Gateway) -> None:
    url = f"http://{secure.settings['internal_listen']}/retrieveformonitoring"
    assert requests.get(url, timeout=30).text == "ok"


@pytest.mark.long
def test_a_renewed_certificate_is_loaded(secure: Gateway) -> None:
    old = served(secure)
    folder = Path(secure.settings["tls_key"]).parent
    (folder / "key.pem").unlink()
    certificate(folder)
    eventually(lambda: served(secure) != old, 20)


def said(gateway: Gateway) -> int:
    return gateway.errors.read_text().count("WARNING: no new certificate")


@pytest.mark.long
def test_what_is_broken_never_replaces_what_works(secure: Gateway) -> None:
    chain, key = (Path(secure.settings[name]) for name in ("tls_certificate", "tls_key"))
    good, old, worker = (chain.read_text(), key.read_text()), served(secure), secure.worker().pid
    certificate(chain.parent / "other")
    other_key = (chain.parent / "other" / "key.pem").read_text()
    broken = [
        (good[0][:300], good[1]),  # half written
        (good[0], other_key),
        (
            good[0],
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----",
        ),
    ]
    for number, texts in enumerate(broken, start=1):
        chain.write_text(texts[0])
        key.write_text(texts[1])
        eventually(lambda: said(secure) == number, 20)  # noqa: B023
        assert served(secure) == old
    key.unlink()
    eventually(lambda: "No such file" in secure.errors.read_text(), 20)
    assert secure.worker().pid == worker  # nobody even reloaded
    # Also when it starts anew, and with the power gone in between.
    secure.process.kill()
    secure.start()
    assert served(secure) == old
    kept = secure.run / "tls.pem"
    assert kept.stat().st_mode & 0o077 == 0
    chain.write_text((chain.parent / "other" / "certificate.pem").read_text())
    key.write_text(other_key)
    eventually(lambda: served(secure) != old, 20)
    # With nothing to start from it says what is missing, and does not start.
    secure.process.stop(30)
    kept.write_text(good[0][:300])
    key.write_text(good[1])
    secure.process.start()
    assert secure.process.wait(30) == 1
    assert f"{key}: [X509" in secure.errors.read_text().splitlines()[-1]


def test_the_script_keeps_a_key_that_is_there(secure: Gateway) -> None:
    key = Path(secure.settings["tls_key"])
    assert key.stat().st_mode & 0o077 == 0
    again = subprocess.run(
        [ROOT / "scripts" / "certificate", key.parent], capture_output=True, check=False
    )
    assert again.returncode == 1
    assert b"is there already" in again.stderr
