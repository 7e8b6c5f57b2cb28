"""The shells of the screens, their static files, and the fallback."""

import gzip
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from monitoring.assets import FOLDER
from monitoring.routes import SCREENS

BEHIND = {"Host": "way.example:8080", "X-Forwarded-Proto": "https"}
FIRST_PAINT_BYTES = 100_000


def test_it_never_imports_pymongo(root: Any) -> None:
    code = "import sys, monitoring; monitoring.create_app(); sys.exit('pymongo' in sys.modules)"
    environment = {"PYTHONPATH": str(root / "services" / "monitoring")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/newbeacondetect", "GET"),
        ("/newbeacondetect", "POST"),
        ("/extractbeacon", "GET"),
        ("/extractbeacon", "POST"),
        ("/retrieveformonitoring", "GET"),
        ("/retrieveformonitoring", "POST"),
        ("/api/v1/staff", "GET"),  # the gateway asks with GET, whatever it was asked with
    ],
)
def test_the_fallback_is_no_success(client: FlaskClient, path: str, method: str) -> None:
    answer = client.open(path, method=method)
    assert answer.status_code == 503
    assert answer.text == '{"data": "Flask servers circuit breaker open."}'
    assert answer.content_type == "application/json"
    assert answer.headers["X-Circuit-State"] == "open"
    assert answer.headers["Retry-After"] == "5"
    origins = [] if path.startswith("/api/") else ["*"]
    assert answer.headers.getlist("Access-Control-Allow-Origin") == origins


def test_the_page_names_the_address_its_visitor_uses(client: FlaskClient) -> None:
    page = client.get("/monitoring", headers=BEHIND)
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert "curl '" in page.text
    assert "https://way.example:8080/newbeacondetect?" in page.text
    assert client.get("/").headers["Location"] == "/monitoring"
    assert client.get("/nothing").get_json() == {"error": "not found"}
    assert client.get("/monitoring/nothing").status_code == 404


def test_on_its_own_port_the_page_says_so_and_leads_to_the_gateway(client: FlaskClient) -> None:
    own = client.get("/monitoring/replay?person=3").text
    assert "own port" in own
    assert re.search(r'href="http://127\.0\.0\.1:\d+/monitoring/replay\?person=3"', own)
    assert 'data-api="/monitoring/api"' in own
    behind = client.get("/monitoring/replay?person=3", headers=BEHIND).text
    assert "own port" not in behind
    assert 'data-api="/api/v1"' in behind


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_is_small_and_names_only_files_of_ours(client: FlaskClient, screen: str) -> None:
    page = client.get("/monitoring" if screen == "live" else f"/monitoring/{screen}")
    assert page.status_code == 200
    named = set(re.findall(r'(?:href|src)="(/monitoring/static/[^"]+)"', page.text))
    every = {*named, *(f"/monitoring/static/{name}" for name in imported(named))}
    files = [client.get(url, headers={"Accept-Encoding": "gzip"}) for url in every]
    assert {answer.status_code for answer in files} == {200}
    total = len(gzip.compress(page.data)) + sum(len(answer.data) for answer in files)
    assert total < FIRST_PAINT_BYTES
    assert not re.findall(
        r'(?:href|src)="(?:https?:)?//', page.text.replace("http://127.0.0.1", "")
    )
    modules = {url for url in every if url.endswith(".js")}
    assert modules <= named, "a module that is not preloaded costs a round trip more"


def imported(urls: set[str]) -> set[str]:
    """Return the names of all modules that these import, directly or not."""
    found: set[str] = set()
    todo = {url.rsplit("/", 1)[1] for url in urls if url.endswith(".js")}
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= set(re.findall(r'from "\./([\w.]+)"', (FOLDER / name).read_text())) - found
    return found


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.iterdir()))
def test_static_files_are_compressed_once(client: FlaskClient, name: str) -> None:
    file = FOLDER / name
    url = f"/monitoring/static/{name}"
    plain = client.get(url)
    assert (plain.status_code, plain.data) == (200, file.read_bytes())
    zipped = client.get(url, headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.data) == file.read_bytes()
    assert plain.headers["Vary"] == zipped.headers["Vary"] == "Accept-Encoding"
    again = client.get(url, headers={"If-None-Match": zipped.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_only_static_files_are_served(client: FlaskClient, root: Path) -> None:
    assert (root / "services" / "monitoring" / "monitoring" / "config.py").exists()
    for path in ("none.css", "../config.py", "%2e%2e/config.py"):
        assert client.get(f"/monitoring/static/{path}").status_code == 404
