"""The Docker Engine of the tests: the one that runs here, else one of our own that goes away again.

Our own keeps its images in .cache/docker, so that only the first run makes them. It needs root.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.processes import ROOT
from scripts.processes.waiting import eventually

CACHE = ROOT / ".cache"
BRIDGE = "waymark-tests"  # the kernel allows 15 characters
BRIDGE_ADDRESS = "10.213.255.1/24"
NETWORKS = "base=10.213.0.0/17,size=24"
START_SECONDS = 60.0
STOP_SECONDS = 60.0


class Docker:
    """The docker command, with the engine and the plugins that the tests use."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def run(
        self, *arguments: str, timeout: float = 600, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run `docker ARGUMENTS` in the checkout, whatever comes of it."""
        return subprocess.run(
            ["docker", *arguments],
            cwd=ROOT,
            env=self.environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            **more,
        )

    def __call__(self, *arguments: str, timeout: float = 600) -> str:
        """Run `docker ARGUMENTS`, which must succeed; return what it printed."""
        done = self.run(*arguments, timeout=timeout)
        assert done.returncode == 0, f"docker {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def inspect(self, kind: str, *names: str) -> list[dict[str, Any]]:
        """Return what `docker KIND inspect` knows."""
        found: list[dict[str, Any]] = json.loads(self(kind, "inspect", *names))
        return found

    def has_image(self, name: str) -> bool:
        """Tell whether the engine has the image."""
        return self.run("image", "inspect", name).returncode == 0


@contextmanager
def engine(inside: Callable[[list[str]], list[str]] = list) -> Iterator[Docker]:
    """Yield docker with an engine and compose; stop the engine if it was started here.

    `inside` makes of its command the one that starts it somewhere, as in a control group.
    """
    environment = dict(os.environ)
    if _runs(environment):
        yield Docker(_with_compose(environment))
        return
    _ensure_program("dockerd", "docker.io")
    _ensure_program("ip", "iproute2")
    with tempfile.TemporaryDirectory(prefix="waymark-engine-") as folder, _bridge():
        environment["DOCKER_HOST"] = f"unix://{folder}/docker.sock"
        with _dockerd(Path(folder), environment, inside):
            yield Docker(_with_compose(environment))


def _runs(environment: dict[str, str]) -> bool:
    if not shutil.which("docker"):
        return False
    command = ["docker", "info", "--format", "{{.ServerVersion}}"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def _ensure_program(program: str, package: str) -> None:
    """Install a Debian package as the scripts do: it says what is missing where it may not."""
    command = f'. scripts/lib.sh && ensure_program "{program}" "{package}"'
    subprocess.run(["bash", "-c", command], cwd=ROOT, check=True)


@contextmanager
def _bridge() -> Iterator[None]:
    """Make a bridge of our own, for docker0 may be somebody else's."""
    subprocess.run(["ip", "link", "delete", BRIDGE], check=False, capture_output=True)  # a crash's
    subprocess.run(["ip", "link", "add", "name", BRIDGE, "type", "bridge"], check=True)
    try:
        subprocess.run(["ip", "address", "add", BRIDGE_ADDRESS, "dev", BRIDGE], check=True)
        subprocess.run(["ip", "link", "set", BRIDGE, "up"], check=True)
        yield
    finally:
        subprocess.run(["ip", "link", "delete", BRIDGE], check=True)


@contextmanager
def _dockerd(
    run: Path, environment: dict[str, str], inside: Callable[[list[str]], list[str]]
) -> Iterator[None]:
    data = CACHE / "docker"
    data.mkdir(parents=True, exist_ok=True)
    command = [
        *("dockerd", "--host", environment["DOCKER_HOST"], "--pidfile", f"{run}/docker.pid"),
        *("--data-root", str(data), "--exec-root", f"{run}/exec"),
        *("--bridge", BRIDGE, "--default-address-pool", NETWORKS, "--log-level", "warn"),
    ]
    log = data.parent / "dockerd.log"
    with log.open("w") as output:
        daemon = subprocess.Popen(
            inside(command), stdout=output, stderr=output, start_new_session=True
        )
    try:
        eventually(lambda: _runs(environment) or daemon.poll() is not None, START_SECONDS)
        assert daemon.poll() is None, f"dockerd does not start:\n{log.read_text()[-2000:]}"
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(STOP_SECONDS)


def _with_compose(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment in which `docker compose` works: Debian 12 has no package of it."""
    have = ["docker", "compose", "version"]
    if not subprocess.run(have, env=environment, capture_output=True, check=False).returncode:
        return environment
    config = CACHE / "docker-config"
    plugin = config / "cli-plugins" / "docker-compose"
    if not plugin.exists():
        subprocess.run([str(Path(__file__).with_name("fetch-compose")), str(plugin)], check=True)
    return environment | {"DOCKER_CONFIG": str(config)}
