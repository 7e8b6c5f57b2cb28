"""The containers of the stack, and which process listens on the engine's socket."""

import os
import socket
import struct
import subprocess
from typing import NamedTuple

LABEL = "com.docker.compose.project"
SOCKET = "unix:///var/run/docker.sock"
FORMAT = (
    "{{.State.Pid}} "
    '{{index .Config.Labels "com.docker.compose.service"}} '
    '{{index .Config.Labels "com.docker.compose.container-number"}}'
)


class NoStackError(Exception):
    """There is no stack to measure; the text says why."""


class Container(NamedTuple):
    """One running container: its service (from the second on with a number), and first process."""

    name: str
    pid: int


def containers(project: str) -> list[Container]:
    """Return the running containers of a compose project. Raises NoStackError."""
    names = _docker("ps", "--quiet", "--filter", f"label={LABEL}={project}").split()
    if not names:
        raise NoStackError(f"no container of the project {project} runs: docker compose up -d")
    rows = (line.split() for line in _docker("inspect", "--format", FORMAT, *names).splitlines())
    return sorted(
        Container(service if number == "1" else f"{service} ({number})", int(pid))
        for pid, service, number in rows
    )


def daemon() -> int | None:
    """Return the process that listens on the engine's socket; None where it has none here."""
    kind, _, path = os.environ.get("DOCKER_HOST", SOCKET).partition("://")
    if kind != "unix":
        return None
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(path)
        except OSError:
            return None
        size = struct.calcsize("3i")
        peer = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", peer)[0])


def _docker(*arguments: str) -> str:
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NoStackError("there is no docker here") from error
    if done.returncode:
        raise NoStackError(done.stderr.strip())
    return done.stdout
