"""The Docker Engine of the tests: `machine` (what is here) or `current...` (what is used today).

`machine` is the engine that runs here, else one of our own, of the machine's package. `current` is
one of our own with the containerd image store, and the newest plugins; `current-overlay2` the same
with the older store. Our own need root, go away again, and keep their images in .cache, so that
only the first run makes them.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scripts.processes import ROOT
from scripts.processes.waiting import eventually

CACHE = ROOT / ".cache"
HERE = Path(__file__).parent
KINDS = ("machine", "current", "current-overlay2")
CURRENT_ENGINE = ("docker.io", "docker-cli", "containerd")  # Debian 13's
NO_GO = 77  # what build-plugins then returns
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
        documents: list[dict[str, Any]] = json.loads(self(kind, "inspect", *names))
        return documents

    def has_image(self, name: str) -> bool:
        """Tell whether the engine has the image."""
        return self.run("image", "inspect", name).returncode == 0


class Tools(NamedTuple):
    """What an engine of our own is made of."""

    environment: dict[str, str]
    data: Path
    settings: dict[str, Any]


@contextmanager
def engine(
    inside: Callable[[list[str]], list[str]] = list, *, kind: str = "machine"
) -> Iterator[Docker]:
    """Yield docker with an engine and compose; stop the engine if it was started here.

    `inside` makes of its command the one that starts it somewhere, as in a control group.
    """
    if kind == "machine" and _runs(dict(os.environ)):
        yield Docker(_with_compose(dict(os.environ)))
        return
    tools = _machines() if kind == "machine" else _current(containerd=kind == "current")
    _ensure_program("ip", "iproute2")
    with tempfile.TemporaryDirectory(prefix="waymark-engine-") as folder, _bridge():
        host = {"DOCKER_HOST": f"unix://{folder}/docker.sock"}
        tools = tools._replace(environment=tools.environment | host)
        with _dockerd(Path(folder), tools, inside):
            yield Docker(tools.environment)


def versions(docker: Docker) -> str:
    """Return what the engine and its plugins are, in a line."""
    engine = docker("info", "--format", "engine {{.ServerVersion}}, image store {{.Driver}}")
    done = docker.run("buildx", "version")
    buildx = done.stdout.split()[1] if done.returncode == 0 else "none"
    return f"{engine}, compose {docker('compose', 'version', '--short')}, buildx {buildx}"


def _machines() -> Tools:
    _ensure_program("dockerd", "docker.io")
    return Tools(_with_compose(dict(os.environ)), CACHE / "docker", {})


def _current(*, containerd: bool) -> Tools:
    """Return Debian 13's engine with one of the two image stores, and the newest plugins."""
    config = CACHE / f"docker-current-{digest(HERE / 'build-plugins')}"
    plugins = config / "cli-plugins"
    if not all((plugins / name).exists() for name in ("docker-compose", "docker-buildx")):
        done = subprocess.run([HERE / "build-plugins", plugins], stdout=subprocess.PIPE, text=True)
        if done.returncode == NO_GO:
            (pytest.fail if os.environ.get("WAYMARK_NO_SKIPS") else pytest.skip)(done.stdout)
        done.check_returncode()
    for program, package in (("runc", "runc"), ("iptables", "iptables"), ("tini", "tini")):
        _ensure_program(program, package)
    programs = _packages(*CURRENT_ENGINE)
    path = f"{programs}/usr/sbin:{programs}/usr/bin:{os.environ['PATH']}"
    environment = dict(os.environ) | {"PATH": path, "DOCKER_CONFIG": str(config)}
    settings: dict[str, Any] = {"init-path": shutil.which("tini")}
    settings["features"] = {"containerd-snapshotter": containerd}
    if not containerd:
        settings["storage-driver"] = "overlay2"
    data = CACHE / ("docker-containerd" if containerd else "docker-overlay2")
    return Tools(environment, data, settings)


def _packages(*names: str) -> Path:
    """Return the folder with these packages of Debian 13, unpacked."""
    folder = CACHE / f"debian13-{'-'.join(names)}"
    if not folder.exists():
        subprocess.run([HERE / "fetch-packages", folder, *names], check=True)
    return folder


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
def _dockerd(run: Path, tools: Tools, inside: Callable[[list[str]], list[str]]) -> Iterator[None]:
    tools.data.mkdir(parents=True, exist_ok=True)
    (run / "daemon.json").write_text(json.dumps(tools.settings))
    command = [
        *("dockerd", "--config-file", f"{run}/daemon.json", "--pidfile", f"{run}/docker.pid"),
        *("--host", tools.environment["DOCKER_HOST"], "--log-level", "warn"),
        *("--data-root", str(tools.data), "--exec-root", f"{run}/exec"),
        *("--bridge", BRIDGE, "--default-address-pool", NETWORKS),
        # systemd would put its groups elsewhere than a test asks for.
        *("--exec-opt", "native.cgroupdriver=cgroupfs"),
    ]
    log = CACHE / "dockerd.log"
    with log.open("w") as output:
        daemon = subprocess.Popen(
            inside(command),
            stdout=output,
            stderr=output,
            env=tools.environment,
            start_new_session=True,
        )
    try:
        eventually(lambda: _runs(tools.environment) or daemon.poll() is not None, START_SECONDS)
        assert daemon.poll() is None, f"dockerd does not start:\n{log.read_text()[-2000:]}"
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(STOP_SECONDS)
        # A build in the host's network leaves it mounted, and the folder could not be removed.
        left = ["umount", str(run / "exec" / "netns" / "default")]
        subprocess.run(left, check=False, capture_output=True)


def _with_compose(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment in which `docker compose` works: Debian 12 has no package of it."""
    have = ["docker", "compose", "version"]
    if not subprocess.run(have, env=environment, capture_output=True, check=False).returncode:
        return environment
    config = CACHE / "docker-config"
    plugin = config / "cli-plugins" / "docker-compose"
    if not plugin.exists():
        plugin.parent.mkdir(parents=True, exist_ok=True)
        packaged = _packages("docker-compose") / "usr/libexec/docker/cli-plugins" / plugin.name
        plugin.symlink_to(packaged)
    return environment | {"DOCKER_CONFIG": str(config)}


def digest(path: Path) -> str:
    """Return what changes with a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
