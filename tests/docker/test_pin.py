"""./scripts/pin writes the digests that a registry tells, here one of our own with tiny images."""

import hashlib
import http.server
import io
import json
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scripts.processes import ROOT
from tests.docker.engine import Docker

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def named(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Registry:
    """Serves images that hold one file each, by the protocol of registries."""

    def __init__(self) -> None:
        self.served: dict[str, tuple[str, bytes]] = {}
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            default_request_version = "HTTP/1.1"  # also to who tries TLS, and then tries without

            def do_GET(self) -> None:
                known = registry.served.get(self.path.rpartition("/")[2])
                kind, content = known or ("application/json", b"{}")
                self.send_response(200 if known or self.path == "/v2/" else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Docker-Content-Digest", named(content))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"

    def publish(self, tag: str, text: bytes) -> str:
        """Have a tag name an image with this text; return the digest."""
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as tar:
            file = tarfile.TarInfo("file")
            file.size = len(text)
            tar.addfile(file, io.BytesIO(text))
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [named(layer.getvalue())]},
        }
        parts = [(CONFIG, json.dumps(config).encode()), (LAYER, layer.getvalue())]
        blobs = [
            {"mediaType": kind, "size": len(part), "digest": named(part)} for kind, part in parts
        ]
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": blobs[0],
            "layers": blobs[1:],
        }
        content = json.dumps(manifest).encode()
        for kind, part in (*parts, (MANIFEST, content)):
            self.served[named(part)] = (kind, part)
        self.served[tag] = (MANIFEST, content)
        return named(content)


@pytest.fixture
def registry() -> Iterator[Registry]:
    registry = Registry()
    thread = threading.Thread(target=registry.server.serve_forever)
    thread.start()
    yield registry
    registry.server.shutdown()
    thread.join()
    registry.server.server_close()


def test_the_digests_of_today_are_written_and_read(
    docker: Docker, registry: Registry, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copy(ROOT / "docker-compose.yml", tmp_path)
    base, mongo = f"{registry.address}/base:b", f"{registry.address}/library/mongo:m"
    settings = tmp_path / ".env"
    settings.write_text(f"WAYMARK_PORT=8099\nBASE_IMAGE={base}\nMONGO_IMAGE={mongo}\n")
    names = ("BASE_IMAGE", "MONGO_IMAGE", "WAYMARK_PORT", "COMPOSE_ENV_FILES")
    environment = {name: v for name, v in docker.environment.items() if name not in names}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    unchanged = registry.publish("m", b"mongo")
    for text in (b"old", b"new"):  # the tag moves on
        digest = registry.publish("b", text)
        done = run("./scripts/pin")
        assert done.returncode == 0, done.stderr
        assert settings.read_text().splitlines() == [
            "WAYMARK_PORT=8099",
            f"BASE_IMAGE={base}@{digest}",
            f"MONGO_IMAGE={mongo}@{unchanged}",
            f"PACKAGES_DAY={datetime.now(UTC).date()}",
        ]
    services = json.loads(run("docker", "compose", "config", "--format", "json").stdout)["services"]
    assert services["shard1"]["image"] == f"{mongo}@{unchanged}"
    assert services["gateway"]["build"]["args"] == {
        "BASE_IMAGE": f"{base}@{digest}",
        "PACKAGES_DAY": settings.read_text().split("PACKAGES_DAY=")[1].strip(),
    }

    written = settings.read_text()
    registry.served.clear()
    done = run("./scripts/pin")
    assert done.returncode != 0
    assert f"{base} could not be pulled: nothing was changed" in done.stderr
    assert settings.read_text() == written
