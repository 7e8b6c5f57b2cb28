"""The page's static files."""

import gzip
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from monitoring.static_files import FOLDER, names


@pytest.mark.parametrize("name", names())
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
