"""What a stranger finds at the ports of a machine.

python -m tests.security.scan ADDRESS PORT... reads what to ask from its input, as `asked` gives it,
and prints what each port that takes connections answered.
"""

import contextlib
import http.client
import json
import re
import socket
import ssl
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

from ingest.rules.roles import Role
from tests.security.routes import CIRCUITS, Route, undeclared
from tests.security.routes import public as shown_by_the_log_in

TOO_MANY, TRIES = 429, 100
# Addresses of no document: the gateway's own, others' habits, what is there of a database.
GUESSED = [
    *("/", "/nginx_status", "/_access", "/_problem", "/_no_page", "/_refused", "/_preflight"),
    *(
        "/readyz",
        "/metrics",
        "/_metrics",
        "/.env",
        "/.git/config",
        "/server-status",
        "/admin",
        "/debug",
    ),
    *("/.well-known/acme-challenge/aaaaaaaaaaaaaaaaaaaa", "/.well-known/security.txt"),
    *("/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/staff", "/static/style.css", "/favicon.ico"),
    *("/monitoring/static/", "/monitoring/../api/v1/staff", "/robots.txt", "/openapi.json"),
]


TRUSTING = ssl.create_default_context()
TRUSTING.check_hostname, TRUSTING.verify_mode = False, ssl.CERT_NONE


class Finding(NamedTuple):
    """What came back to one request."""

    method: str
    path: str
    status: int  # 0: nothing that HTTP knows
    body: str  # how it begins
    leads: str = ""  # where it leads to


def asked(routes: Iterable[Route]) -> list[dict[str, str]]:
    """Return what is asked of each port: all routes, what others guess, with each method."""
    known = [*routes, *(Route("GET", path, Role.ADMIN) for path in GUESSED)]
    return [
        {
            "method": route.method,
            "path": route.path,
            "query": route.query,
            "kind": route.kind,
            "body": route.body.decode(),
        }
        for route in [*known, *undeclared(known)]
    ]


def scan(
    address: str, ports: Iterable[int], wanted: list[dict[str, str]]
) -> dict[int, list[Finding]]:
    """Return what each port that takes connections answers to a stranger."""
    return {
        port: [_try(address, port, version, tls=tls) for version in wanted]
        for port in ports
        if (tls := _takes_tls(address, port)) is not None
    }


def beyond(findings: Iterable[Finding]) -> list[Finding]:
    """Return what a stranger could read or change besides what all may."""
    return [finding for finding in findings if not _is_fine(finding)]


def _is_fine(one: Finding) -> bool:
    if one.status in (400, 401, 403, 404, 405, 415, 421) or (not one.status and not one.body):
        return True
    if one.status in (301, 302, 303, 307, 308):
        return re.match(r"/(?![/\\])|https://", one.leads) is not None  # here, or to TLS
    if one.method == "OPTIONS":
        return one.status in (200, 204) and not one.body
    if one.method not in ("GET", "HEAD") or one.status != 200:
        return False
    return one.path in {*shown_by_the_log_in(), "/healthz", *CIRCUITS}


def _takes_tls(address: str, port: int) -> bool | None:
    """Tell whether a port takes TLS; None: it takes no connections."""
    try:
        with socket.create_connection((address, port), timeout=5) as connection:
            connection.settimeout(5)
            with TRUSTING.wrap_socket(connection):
                return True
    except ConnectionRefusedError:
        return None
    except OSError:  # SSLError is one
        return False


def _try(address: str, port: int, one: dict[str, str], *, tls: bool) -> Finding:
    target = one["path"] + (f"?{one['query']}" if one["query"] else "")
    headers = {"Content-Type": one["kind"]} if one["kind"] else {}
    for _ in range(TRIES):
        connection = http.client.HTTPConnection(address, port, timeout=30)
        if tls:
            connection = http.client.HTTPSConnection(address, port, timeout=30, context=TRUSTING)
        with contextlib.closing(connection):
            try:
                connection.request(one["method"], target, one["body"] or None, headers)
                answer = connection.getresponse()
                body = answer.read(300).decode("latin-1")
            except ConnectionError:  # a port that is published, with nothing behind it
                return Finding(one["method"], one["path"], 0, "")
            except (http.client.HTTPException, OSError) as error:
                return Finding(one["method"], one["path"], 0, repr(error))
        leads = answer.headers["Location"] or ""
        finding = Finding(one["method"], one["path"], answer.status, body, leads)
        if finding.status != TOO_MANY:
            break
        time.sleep(0.2)
    return finding


def main() -> None:
    """Scan, for whoever reads JSON."""
    address, *ports = sys.argv[1:]
    findings = scan(address, map(int, ports), json.load(sys.stdin))
    json.dump(findings, sys.stdout)


if __name__ == "__main__":
    main()
