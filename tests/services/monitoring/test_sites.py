"""The screen Sites: what several Waymarks tell, each of which may be away, slow or wrong."""

import json
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from flask.testing import FlaskClient

from monitoring import create_app
from monitoring.config import Config
from monitoring.gateway import authorities
from monitoring.sites import MAX_KEPT_BYTES, MAX_SITES, NAMES_SECONDS, REFRESH_SECONDS, Sites, load
from scripts.processes import ROOT
from scripts.processes.control_groups import Limits
from scripts.processes.limited_group import available
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.services.monitoring.conftest import Service
from tests.upstream import Upstream

STAFF = b'{"as_of":100,"data":[{"staff_id":7}]}'
LIMIT_BYTES = 48 * 2**20
WAIT_SECONDS = 20
READERS = 8


def written(folder: Path, **urls: str) -> Path:
    """Write a file of sites, each with a token of its own."""
    lines = []
    for name, url in urls.items():
        (folder / f"{name}.token").write_text(f"token-of-{name}\n")
        lines += [f"[{name}]", f'url = "{url}"', f'token_file = "{name}.token"']
    file = folder / "sites.toml"
    file.write_text("\n".join(lines))
    return file


def service(folder: Path, **urls: str) -> FlaskClient:
    config = Config(sites_file=str(written(folder, **urls)), gateway_timeout_seconds=1)
    return create_app(config).test_client()


def told(client: FlaskClient) -> dict[str, dict[str, Any]]:
    answer = client.get("/monitoring/api/sites")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    return {site["name"]: site for site in answer.get_json()["data"]}


@pytest.fixture
def several() -> Iterator[Callable[[], Upstream]]:
    """Return what makes another site."""
    with ExitStack() as stack:

        def make() -> Upstream:
            upstream = Upstream()
            stack.callback(upstream.close)
            upstream.answer(200, STAFF)
            return upstream

        yield make


def test_each_site_is_asked_with_its_token_for_all_pages_at_once(
    several: Callable[[], Upstream], tmp_path: Path
) -> None:
    north, south = several(), several()
    client = service(tmp_path, north=north.url, south=south.url)
    sites = told(client)
    assert list(sites) == ["north", "south"]
    assert sites["south"]["url"] == south.url
    for site in sites.values():
        assert json.loads(site["staff"]) == json.loads(STAFF)
        assert (site["problem"], site["failing_since"], site["has_more"]) == ("", None, False)
        assert abs(site["read_at"] - time.time()) < WAIT_SECONDS
    for _ in range(5):
        told(client)
    for name, upstream in (("north", north), ("south", south)):
        assert [request[1] for request in upstream.requests] == [
            "/api/v1/staff?limit=4000",
            "/api/v1/people",
        ]
        for _, _, headers, _ in upstream.requests:
            assert headers["authorization"] == f"Bearer token-of-{name}"


def test_without_a_file_there_is_no_such_screen(client: FlaskClient) -> None:
    assert client.get("/monitoring/sites").status_code == 404
    assert client.get("/monitoring/api/sites").status_code == 404
    assert "/monitoring/sites" not in client.get("/monitoring").text


def test_with_one_every_screen_leads_there(upstream: Upstream, tmp_path: Path) -> None:
    client = service(tmp_path, north=upstream.url)
    assert 'href="/monitoring/sites"' in client.get("/monitoring").text
    assert "Who is where, at all sites?" in client.get("/monitoring/sites").text
    assert upstream.requests == []  # until somebody looks


def test_a_site_that_goes_keeps_what_it_told_and_says_since_when(
    several: Callable[[], Upstream], tmp_path: Path
) -> None:
    clock = [1000.0]
    upstream = several()
    sites = Sites(load(written(tmp_path, north=upstream.url)), 1, lambda: clock[0])

    def site() -> dict[str, Any]:
        document: dict[str, Any] = json.loads(b"".join(sites.pieces()))["data"][0]
        return document

    def site_with(*, problem: bool) -> dict[str, Any]:
        clock[0] += NAMES_SECONDS
        eventually(lambda: bool(site()["problem"]) is problem, WAIT_SECONDS)
        return site()

    assert site()["read_at"] == 1000
    upstream.close()
    gone = site_with(problem=True)
    assert json.loads(gone["staff"]) == json.loads(STAFF)
    assert (gone["read_at"], gone["failing_since"]) == (1000, 1000 + NAMES_SECONDS)
    assert "did not answer" in gone["problem"]
    assert site_with(problem=True)["failing_since"] == 1000 + NAMES_SECONDS
    upstream.reopen()
    back = site_with(problem=False)
    assert (back["failing_since"], back["read_at"]) == (None, clock[0])
    clock[0] += NAMES_SECONDS  # nobody looked meanwhile: the first one waits for what is of now
    assert site()["read_at"] == clock[0]


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (401, b"{}", "it does not know the token"),
        (403, b"{}", "the token may not read there"),
        (404, b"{}", "there is no Waymark at its address"),
        (400, b"{}", "it answered 400"),
        (302, b"{}", "answered 302"),
        (503, b"{}", "answered 503"),
        (200, b"<html>", "not JSON"),
        (200, b'{"status": "ok"}', "something else than who is there"),
    ],
)
def test_it_says_why_a_site_cannot_be_read(
    upstream: Upstream, tmp_path: Path, status: int, body: bytes, why: str
) -> None:
    upstream.answer(status, body, {"Location": f"{upstream.url}/elsewhere"})
    site = told(service(tmp_path, north=upstream.url))["north"]
    assert why in site["problem"]
    assert site["staff"] is None
    assert "/elsewhere" not in [request[1] for request in upstream.requests]


def test_sites_that_hang_keep_nobody_waiting(
    several: Callable[[], Upstream], tmp_path: Path
) -> None:
    hanging = [several() for _ in range(3)]
    for upstream in hanging:
        upstream.fault = "hang"
    well = several()
    urls = {f"hanging{number}": upstream.url for number, upstream in enumerate(hanging)}
    client = service(tmp_path, **urls, well=well.url)
    told(client)
    eventually(lambda: told(client)["well"]["staff"] is not None, WAIT_SECONDS)
    eventually(lambda: told(client)["hanging0"]["problem"], WAIT_SECONDS)
    assert told(client)["well"]["problem"] == ""


def test_sites_that_drip_keep_no_other_from_being_asked(
    several: Callable[[], Upstream], tmp_path: Path
) -> None:
    dripping, well = [several(), several()], several()
    for upstream in dripping:
        upstream.fault = "drip"
        upstream.answer(200, b'{"data": [' + b" " * 1000 + b"]}")
    urls = {f"dripping{number}": upstream.url for number, upstream in enumerate(dripping)}
    client = service(tmp_path, **urls, well=well.url)
    eventually(lambda: told(client)["well"]["staff"] is not None, WAIT_SECONDS)
    eventually(lambda: "does not end" in told(client)["dripping1"]["problem"], WAIT_SECONDS)


def test_one_site_takes_no_other_its_room(several: Callable[[], Upstream], tmp_path: Path) -> None:
    greedy, well = several(), several()
    greedy.answer(200, json.dumps({"data": ["x" * 1_000_000]}).encode())
    client = service(tmp_path, greedy=greedy.url, well=well.url)
    eventually(lambda: told(client)["greedy"]["problem"], WAIT_SECONDS)
    site = told(client)["well"]
    assert (site["problem"], json.loads(site["staff"])) == ("", json.loads(STAFF))
    assert "too many people" in told(client)["greedy"]["problem"]


@pytest.mark.parametrize(
    ("token", "why"),
    [(None, "cannot be read"), ("", "there is no token"), ("a\nb", "there is no token")],
)
def test_a_token_is_read_when_it_is_needed_and_keeps_nothing_from_starting(
    upstream: Upstream, tmp_path: Path, token: str | None, why: str
) -> None:
    upstream.answer(200, STAFF)
    file = written(tmp_path, north=upstream.url)
    secret = tmp_path / "north.token"
    if token is None:
        secret.unlink()
    else:
        secret.write_text(token)
    clock = [1000.0]
    sites = Sites(load(file), 1, lambda: clock[0])
    assert why in b"".join(sites.pieces()).decode()
    secret.write_text("right")
    clock[0] += REFRESH_SECONDS
    eventually(lambda: sites.pieces() and upstream.requests, WAIT_SECONDS)
    assert upstream.requests[0][2]["authorization"] == "Bearer right"


def test_what_is_no_json_spoils_no_other_site(
    several: Callable[[], Upstream], tmp_path: Path
) -> None:
    broken, well = several(), several()
    broken.answer(200, b'{"data": [}, "\xff\\u0000"]}')
    sites = told(service(tmp_path, broken=broken.url, well=well.url))
    assert json.loads(sites["well"]["staff"])["data"] == [{"staff_id": 7}]
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(sites["broken"]["staff"])


def test_a_site_of_an_older_release_that_knows_no_names_is_read_all_the_same(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.answer(200, STAFF)
    upstream.faulty_path, upstream.fault = "/api/v1/people", "missing"
    site = told(service(tmp_path, north=upstream.url))["north"]
    assert (site["problem"], site["people"]) == ("", None)
    assert json.loads(site["staff"]) == json.loads(STAFF)


@pytest.mark.long
def test_its_memory_is_enough_for_many_sites_and_readers(
    several: Callable[[], Upstream], tmp_path: Path
) -> None:
    """With the widest characters, and as much as is kept of each."""
    people = [{"staff_id": "\N{GRINNING FACE}" * 3} for _ in range(800)]
    many = json.dumps({"data": people}, ensure_ascii=False).encode()
    huge = json.dumps({"data": ["x" * 1_000_000]}).encode()
    urls = {}
    for number in range(MAX_SITES):
        upstream = several()
        upstream.answer(200, huge if number % 2 else many)
        urls[f"site{number}"] = upstream.url
    file = written(tmp_path, **urls)
    limits = Limits(None, LIMIT_BYTES) if available() else None
    service = Service(urls["site0"], tmp_path, limits, {"SITES_FILE": str(file)})
    service.start()
    address = f"http://127.0.0.1:{service.port}/monitoring/api/sites"
    ends = time.monotonic() + 3 * REFRESH_SECONDS

    def read(_: int) -> int:
        count = 0
        while time.monotonic() < ends:
            answer = requests.get(address, timeout=WAIT_SECONDS)
            assert len(answer.json()["data"]) == MAX_SITES  # whole
            count += 1
        return count

    try:
        with ThreadPoolExecutor(READERS) as readers:
            assert min(readers.map(read, range(READERS))) > 1
        assert len(requests.get(address, timeout=WAIT_SECONDS).content) < 1.1 * MAX_KEPT_BYTES
        assert not service.group or service.group.usage().killed == 0
    finally:
        print(service.log[-1500:])
        service.stop()


@pytest.fixture
def over_tls(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve a site over TLS; return its address, and the certificate that proves it."""
    folder = tmp_path / "tls"
    command = [str(ROOT / "scripts/certificate"), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    certificate = folder / "certificate.pem"

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(STAFF)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, folder / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_address[1]}", certificate
        server.shutdown()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_site_has_to_prove_itself_before_it_gets_a_token(
    over_tls: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    url, certificate = over_tls
    if is_known:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    authorities.cache_clear()
    client = service(tmp_path, north=url)
    authorities.cache_clear()
    eventually(lambda: told(client)["north"]["read_at"] or told(client)["north"]["problem"], 20)
    site = told(client)["north"]
    assert bool(site["staff"]) is is_known
    assert is_known or "CERTIFICATE_VERIFY_FAILED" in site["problem"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has 0 sites, not 1 to 16"),
        ("x", "sites.toml: "),
        ("north = 1", "[north] needs url and token_file, and nothing else"),
        ("[north]\nurl = 'https://a.example'", "[north] needs url and token_file"),
        ("[north]\nurl = 1\ntoken_file = 'x'", "url must be as https://"),
        ("[north]\nurl = 'http://a.example'\ntoken_file = 'x'", "url must be as https://"),
        ("[north]\nurl = 'https://a.example/x'\ntoken_file = 'x'", "url must be as https://"),
        ("[north]\nurl = 'javascript:x'\ntoken_file = 'x'", "url must be as https://"),
        ("['']\nurl = 'https://a.example'\ntoken_file = 'x'", "is no name to show"),
        *(
            (f"[north]\nurl = 'https://{address}'\ntoken_file = 'x'", "url must be as https://")
            for address in ("a?x", "a#x", "a:99999", ":p@a", "a b", "[::1", "")
        ),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "sites.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match="SITES_FILE") as raised:
        load(file)
    assert why in str(raised.value)


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"SITES_FILE: .*nowhere"):
        create_app(Config(sites_file=str(tmp_path / "nowhere.toml")))


def test_no_address_that_nobody_serves_is_taken_for_an_empty_site(tmp_path: Path) -> None:
    client = service(tmp_path, north=f"http://127.0.0.1:{free_port()}")
    eventually(lambda: told(client)["north"]["problem"], WAIT_SECONDS)
    assert told(client)["north"]["staff"] is None
