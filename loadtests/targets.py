"""Load goes to this machine only."""

import ipaddress
import urllib.parse


class ForeignTarget(ValueError):
    """The target is not this machine; the text says how to insist."""


def check(url: str, *, i_own_this_host: bool = False) -> str:
    """Return the target without a trailing slash; ForeignTarget unless it is on this machine.

    The project's containers publish their ports on 127.0.0.1, so they are on it too.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ForeignTarget(f"{url!r} is no target: give http://127.0.0.1:PORT")
    if not (i_own_this_host or _is_here(parts.hostname)):
        raise ForeignTarget(
            f"{parts.hostname} is not this machine. Load may stop a server: only if you answer for "
            "that one, say --i-own-this-host"
        )
    return url.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may stand for any machine, now or a second later
