"""OpenID Connect, as far as it needs nobody: whom the settings let in, and where people are led."""

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from ingest.rules.roles import Role

# From the click on our page to the way back, with a password and a second factor between.
MAX_AGE_SECONDS = 600
HOME = "/monitoring"
_PAGE = re.compile(r"/monitoring([/?][\x21-\x7e]*)?")
_MAX_PAGE = 1000


def role_of(name: str, admins: Iterable[str], readers: Iterable[str]) -> Role | None:
    """Return what somebody may do by the settings' patterns: names, or `*@` and a domain."""
    if _is_one_of(name, admins):
        return Role.ADMIN
    return Role.READ if _is_one_of(name, readers) else None


def page_address(asked: str) -> str:
    """Return where somebody goes after the log-in: nowhere but to the page."""
    return asked if len(asked) <= _MAX_PAGE and _PAGE.fullmatch(asked) else HOME


def is_private(url: str) -> bool:
    """Tell whether nobody on the way can read or change what is said to an address."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018  # raises ValueError
        if parts.scheme == "http":
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        return parts.scheme == "https" and bool(host)
    except ValueError:
        return False


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    # Of an address all after the last @ is its domain.
    domain = "*@" + name.rpartition("@")[2] if "@" in name else ""
    return any(pattern in (name, domain) for pattern in patterns)
