"""Ask a server for its health; each function returns None when it is well, else what is wrong."""

import contextlib
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable

from mongo import clients

Probe = Callable[[], str | None]

TIMEOUT_SECONDS = 2.0


def http_problem(url: str) -> str | None:
    """Ask for a URL, which is to be answered with a status below 400."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=TIMEOUT_SECONDS).close()
    except urllib.error.HTTPError as error:
        return f"{url} answers {error.code}"
    except (OSError, http.client.HTTPException) as error:
        return f"{url} does not answer: {getattr(error, 'reason', error)}"
    return None


def remarks(port: int) -> list[str]:
    """Ask an ingest service on this machine what somebody has to see to, also while it is well."""
    service = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    with contextlib.closing(service):
        try:
            service.request("GET", "/readyz")
            said = json.load(service.getresponse())
            damaged, warnings = int(said.get("set_aside", 0)), list(said.get("warnings", ()))
        except (OSError, http.client.HTTPException, ValueError, TypeError, AttributeError):
            return []  # its health says that it does not answer
    aside = f"damaged in its spool and set aside: {damaged}"
    return [*[aside] * bool(damaged), *map(str, warnings)]


def mongodb_problem(port: int) -> str | None:
    """Ask a mongod or mongos on this machine whether it serves."""
    answer = clients.hello(f"127.0.0.1:{port}")
    if answer is None:
        return "does not answer"
    # A router says `isdbgrid`; a member is well as a primary or a secondary.
    is_router = answer.get("msg") == "isdbgrid"
    if answer.get("isWritablePrimary") or answer.get("secondary") or is_router:
        return None
    return str(answer.get("info", "waits for an election"))
