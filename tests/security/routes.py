"""Every route there is, with the role that it needs: those of openapi.json, and the page's."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

import monitoring
from ingest.rules.roles import Role
from monitoring.config import Config
from monitoring.screens import FOR_ADMINS, TITLES
from monitoring.static_files import FOLDER, names

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
NOT_AT_THE_GATEWAY = ("/readyz", "/metrics")  # each service's own
# Only the gateway's; it asks with a GET, whatever the method.
CIRCUITS = ("/_circuit/ingest", "/_circuit/reads")
SERVICE = ("/_service/0", "/_service/0/metrics")
LOGIN = "/monitoring/login"
# With good credentials these end what later requests need, so they are sent without any body.
OWN_SESSION = re.compile("/api/v1/session(/.*)?")
ENDS = ("POST", "/api/v1/session/everywhere")
_NEEDS = re.compile("Needs the role `([a-z]+)`")
# Nothing that is there, so that whoever may remove it removes nothing.
_EXAMPLES = {"staff_id": "7", "mac": "AABBCCDDEE77"}
_IMPORT = re.compile(r'from "(\./|\.\./)?([^"]+)"')


class Route(NamedTuple):
    """One method of one address, with a body that would be taken."""

    method: str
    path: str
    role: Role  # that it needs
    kind: str = ""
    body: bytes = b""
    query: str = ""
    declared: bool = True  # False: the address does not have this method

    @property
    def page(self) -> bool:
        """Tell whether it is the monitoring service's."""
        return self.path.startswith("/monitoring")


def everything(document: dict[str, Any]) -> list[Route]:
    """Return all of them."""
    gateways = [Route("GET", path, Role.NOBODY) for path in CIRCUITS]
    gateways += [Route("GET", path, Role.READ) for path in SERVICE]
    return [*of_document(document), *of_the_page(), *gateways]


def of_document(document: dict[str, Any]) -> Iterator[Route]:
    """Yield each operation with its example."""
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            needed = _NEEDS.search(described["description"])
            role = Role(needed[1]) if needed else Role.NOBODY
            assert ("security" in described) == (role is not Role.NOBODY), (method, path)
            filled, query = path, []
            for parameter in described["parameters"]:
                example = str(parameter["schema"].get("example", "x"))
                if parameter["in"] == "path":
                    filled = filled.replace(
                        f"{{{parameter['name']}}}", _EXAMPLES.get(parameter["name"], example)
                    )
                elif parameter.get("required"):
                    query.append((parameter["name"], example))
            kind, body = _example(described)
            if OWN_SESSION.fullmatch(filled):
                kind, body = "", b""
            yield Route(method.upper(), filled, role, kind, body, urlencode(query))


def _example(described: dict[str, Any]) -> tuple[str, bytes]:
    for kind, content in described.get("requestBody", {}).get("content", {}).items():
        example = content.get("example")
        if isinstance(example, str):
            return kind, example.encode()
        if example is not None:
            return kind, json.dumps(example).encode()
    return "", b""


def of_the_page() -> Iterator[Route]:
    """Yield what the monitoring service routes, its files and its screens one by one."""
    app = monitoring.create_app(Config(gateway_url="http://127.0.0.1:1"))
    values = {
        "filename": names(),
        "screen": list(TITLES),
        "path": ["staff", "staff/7/detections", "coverage", "beacons/unknown", "nothing"],
    }
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/monitoring"):
            needed = re.search(r"<(?:\w+:)?(\w+)>", rule.rule)
            for value in values[needed[1]] if needed else [""]:
                path = rule.rule.replace(needed[0], value) if needed else rule.rule
                needs = Role.ADMIN if value in FOR_ADMINS else Role.READ
                yield Route("GET", path, Role.NOBODY if path in public() else needs)


def public() -> set[str]:
    """Return what the log-in shows: its page, and the files that it names or imports."""
    modules, unread = {"style.css", "icon.svg", "boot.js"}, ["screens/login.js"]
    while unread:
        name = unread.pop()
        modules.add(name)
        file = FOLDER / name
        for base, target in _IMPORT.findall(file.read_text()):
            module = str((file.parent / base / target).resolve().relative_to(FOLDER.resolve()))
            if module not in modules:
                unread.append(module)
    return {LOGIN, *(f"/monitoring/static/{name}" for name in modules)}


def undeclared(routes: list[Route]) -> Iterator[Route]:
    """Yield each address with each method that it does not have."""
    has: dict[str, dict[str, Route]] = {}
    for route in routes:
        has.setdefault(route.path, {})[route.method] = route
    for path, methods in has.items():
        for method in METHODS:
            if method not in methods and path not in (*CIRCUITS, *SERVICE):
                like = methods.get("GET") if method == "HEAD" else None
                role = like.role if like else next(iter(methods.values())).role
                yield Route(method, path, role, "application/json", b"{}", declared=False)
