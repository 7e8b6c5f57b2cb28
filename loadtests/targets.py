"""Load goes to this machine only, and to what answers there: what it wants, and how it confirms."""

import ipaddress
import os
import socket
import urllib.parse

CONNECT_SECONDS = 5.0
ADDED = b"New Beacon Detection Added"
STORED = (200, 202)  # now, or soon


class ForeignTarget(ValueError):
    """The target is not this machine; the text says how to insist."""


class DeadTarget(ValueError):
    """Nothing answers at the target."""


def check(url: str, *, i_own_this_host: bool = False) -> str:
    """Return the target without a trailing slash; ForeignTarget unless it is on this machine.

    The project's containers publish their ports on 127.0.0.1, so they are on it too.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or _port_is_wrong(parts):
        raise ForeignTarget(f"{url!r} is no target: give http://127.0.0.1:PORT")
    if not (i_own_this_host or _is_here(parts.hostname)):
        raise ForeignTarget(
            f"{parts.hostname} is not this machine. Load may stop a server: only if you answer for "
            "that one, say --i-own-this-host"
        )
    return url.rstrip("/")


def authorization() -> dict[str, str]:
    """Return the header for a target that wants a token: the environment has it."""
    token = os.environ.get("WAYMARK_TOKEN", "")
    return {"Authorization": f"Bearer {token}"} if token else {}


def reach(url: str) -> None:
    """Raise DeadTarget unless something listens there."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        socket.create_connection((parts.hostname, port), CONNECT_SECONDS).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise DeadTarget(f"nothing answers at {url}: {why.lower()}. Is the stack up?") from error


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may stand for any machine, now or a second later


def _port_is_wrong(parts: urllib.parse.SplitResult) -> bool:
    try:
        return parts.port == 0
    except ValueError:
        return True
