"""A mirror of packages that does not answer for a while: the images are made all the same."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

from tests.docker.engine import Docker
from tests.docker.images import images

AWAY_SECONDS = 10.0  # longer than apt tries by itself
IMAGE = "waymark-tests/late-mirror"


class Mirror(ThreadingHTTPServer):
    """A proxy of HTTP that hangs up on everybody at first."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refused = 0
        self.back: float | None = None  # on the monotonic clock; from the first request on


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        mirror: Any = self.server
        mirror.back = mirror.back or time.monotonic() + AWAY_SECONDS
        if time.monotonic() < mirror.back:
            mirror.refused += 1
            self.close_connection = True
            return
        wanted = {name: self.headers[name] for name in ("Range",) if name in self.headers}
        with requests.get(self.path, headers=wanted, stream=True, timeout=60) as answer:
            self.send_response_only(answer.status_code)
            for name in ("Content-Length", "Content-Range", "Last-Modified"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.end_headers()
            for piece in answer.iter_content(65536):
                self.wfile.write(piece)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with Mirror() as server:
        threading.Thread(target=server.serve_forever).start()
        yield server
        server.shutdown()


def test_the_build_waits_for_its_mirror(docker: Docker, mirror: Mirror) -> None:
    proxy = f"http_proxy=http://127.0.0.1:{mirror.server_address[1]}"
    try:
        docker(
            *("build", "--no-cache", "--network", "host", "--target", "python", "--tag", IMAGE),
            *("--build-arg", proxy, "--build-arg", "no_proxy="),
            *("--build-arg", f"BASE_IMAGE={images(docker).base}", "."),
        )
        assert mirror.refused > 0
    finally:
        docker.run("image", "rm", IMAGE)
