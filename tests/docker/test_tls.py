"""The stack over TLS, by `./scripts/configure NAME` and `docker compose up -d` alone."""

import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPException, HTTPSConnection
from typing import NamedTuple

import pytest
import requests
from cryptography import x509

from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.docker.conftest import Stack
from tests.docker.engine import HERE

NAME = "waymark.test"
HEAL_SECONDS = 240.0


class Site(NamedTuple):
    """What an administrator has after `configure`."""

    port: int
    secret: str

    def ask(self, path: str, secret: str = "") -> tuple[int, bytes]:
        """Return the status that comes over TLS, 0 while nothing does, and the certificate."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a test's authority
        headers = {"Host": NAME} | ({"Authorization": f"Bearer {secret}"} if secret else {})
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context)
        with closing(connection):
            try:
                connection.request("GET", path, headers=headers)
            except (OSError, HTTPException):
                return 0, b""
            shown = connection.sock.getpeercert(binary_form=True)
            return connection.getresponse().status, shown or b""


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run both commands; the name and the authority are the test's, the rest is a fresh box's."""
    folder = tmp_path_factory.mktemp("tls")
    authority = folder / "authority"
    certificate = [str(ROOT / "scripts" / "certificate"), str(authority), "authority"]
    subprocess.run(certificate, check=True, capture_output=True)
    config = {
        "listenAddress": "0.0.0.0:14000",
        "managementListenAddress": "0.0.0.0:15000",
        "certificate": "/authority/certificate.pem",
        "privateKey": "/authority/key.pem",
        "httpPort": 8080,  # what is published as 80
        "tlsPort": 8443,
    }
    (authority / "pebble.json").write_text(json.dumps({"pebble": config}))
    pebble = shutil.which("pebble")
    assert pebble

    settings = folder / ".env"
    configure = [f"{ROOT}/scripts/configure", "--file", str(settings), "--publish", "127.0.0.1"]
    done = subprocess.run([*configure, NAME], check=True, capture_output=True, text=True)
    [secret] = re.findall(r"^ +(wm_\S+)$", done.stdout, re.MULTILINE)
    written = dict(line.split("=", 1) for line in settings.read_text().splitlines())
    ours = {
        "AUTHORITY": str(authority),
        "PEBBLE": pebble,
        "ACME_DIRECTORY": "https://authority:14000/dir",
        # Somebody else may have the ports of a real one.
        **{name: stack.docker.environment[name] for name in ("WAYMARK_PORT", "WAYMARK_TLS_PORT")},
    }
    before = dict(stack.docker.environment)
    stack.docker.environment |= written | ours
    with stack.also(HERE / "authority.yml"):
        stack.compose("build", "acme")
        stack.compose("up", "--detach")
        yield Site(int(ours["WAYMARK_TLS_PORT"]), secret)
        stack.compose("rm", "--stop", "--force", "acme", "authority")
    stack.docker.environment.clear()
    stack.docker.environment |= before


def test_a_certificate_comes_by_itself_and_the_administrator_is_let_in(
    stack: Stack, site: Site
) -> None:
    try:
        eventually(lambda: site.ask("/api/v1/now", site.secret)[0] == 200, HEAL_SECONDS)
    except TimeoutError:
        print(stack.compose("logs", "--tail", "40", "acme", "authority", "gateway"))
        raise
    certificate = x509.load_der_x509_certificate(site.ask("/healthz")[1])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == [NAME]
    assert {site.ask(path)[0] for path in ("/api/v1/now", "/retrieveformonitoring")} == {401}
    plain = requests.get(
        f"{stack.url}/monitoring", headers={"Host": NAME}, allow_redirects=False, timeout=30
    )
    assert plain.status_code in (301, 308)
    assert plain.headers["Location"].startswith(f"https://{NAME}")


def test_the_client_could_prove_a_public_authority(stack: Stack, site: Site) -> None:
    """Its image has the certificates of the world's authorities: without, only a test's works."""
    file = "/etc/ssl/certs/ca-certificates.crt"
    held = stack.compose("exec", "--no-TTY", "acme", "grep", "--count", "BEGIN CERT", file)
    assert int(held) > 50
