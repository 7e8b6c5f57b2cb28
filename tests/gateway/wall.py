"""A gateway, two ingest services that require a log-in and the page, with people on two levels."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import requests
from pymongo import MongoClient

from ingest.access import tokens
from ingest.rules.roles import Role
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway
from tests.security.routes import NOT_AT_THE_GATEWAY
from tests.service import Service, running
from tests.services.ingest.people import KEY, PASSWORD, office
from tests.services.monitoring.conftest import Service as Monitoring

MACS = {"4": "C2A628040001", "5": "C2A628050001"}  # by level
ROOMS = {"4": "Room 4-01", "5": "Room 5-01"}
TEAM, OTHERS = "Cleaning", "Security"  # of 1 and of 3, on level 4; the others have none
SESSION = "/api/v1/session"


class Site(NamedTuple):
    """The stack; `anna` is an admin who has logged in."""

    gateway: Gateway
    anna: requests.Session
    folder: Path

    def api(self, method: str, path: str, **more: Any) -> requests.Response:
        """Ask the API as anna."""
        return self.anna.request(method, f"{self.gateway.url}/api/v1{path}", timeout=30, **more)

    def made(self, **more: Any) -> dict[str, Any]:
        """Make a token to read with."""
        answer = self.api("POST", "/tokens", json={"label": "a wall", "role": "read"} | more)
        assert answer.status_code == 200, answer.text
        token: dict[str, Any] = answer.json()
        return token

    def operations(self) -> Iterator[tuple[str, str]]:
        """Yield each method and path of the document but health and the log-in."""
        for path, methods in self.api("GET", "/openapi.json").json()["paths"].items():
            filled = path.replace("{staff_id}", "0").replace("{mac}", MACS["5"])
            filled = re.sub(r"\{\w+\}", "x", filled)
            for method, described in methods.items():
                if "security" in described and path not in NOT_AT_THE_GATEWAY:
                    yield method.upper(), filled


def shown(gateway: Gateway, secret: str) -> requests.Session:
    """Return a browser that has opened a link."""
    wall = requests.Session()
    wall.trust_env = False

    def opened() -> list[requests.Response]:  # 429: its database is busy; a page asks again, too
        answer = wall.post(f"{gateway.url}{SESSION}", json={"token": secret}, timeout=30)
        return [answer] if answer.status_code != 429 else []

    [answer] = eventually(opened)
    assert answer.status_code == 200, answer.text
    wall.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return wall


@contextmanager
def walls(mongod: str, folder: Path) -> Iterator[Site]:
    """Run it."""
    (folder / "run").mkdir()
    (folder / "page_token").write_text(tokens.generate())
    (folder / "session_key").write_text(KEY)
    settings: Mapping[str, str] = {
        "WAYMARK_ACCESS": "required",
        "SESSION_KEY_FILE": str(folder / "session_key"),
        "PAGE_TOKEN_FILE": str(folder / "page_token"),
    }
    with (
        MongoClient[dict[str, Any]](mongod) as client,
        office(mongod, client["ICT3102"], folder) as people,
        running(*(Service(mongod, folder, (), **settings) for _ in range(2))) as services,
    ):
        people.service()
        people.person("anna", Role.ADMIN)
        ingest = " ".join(f"127.0.0.1:{service.port}" for service in services)
        gateway = Gateway(folder / "run", ingest=ingest, access="required")
        page = Monitoring(gateway.url, folder, settings=settings)
        gateway.settings["monitoring"] = f"127.0.0.1:{page.port}"
        try:
            page.start()
            gateway.start()
            yield _furnished(Site(gateway, _logged_in(gateway), folder))
        finally:
            gateway.close()
            page.kill()
            for name in ("staff", "latest", "notes", "beacons", "people", "directory"):
                client["ICT3102"][name].delete_many({})


def _logged_in(gateway: Gateway) -> requests.Session:
    anna = requests.Session()
    anna.trust_env = False
    body = {"name": "anna", "password": PASSWORD}
    answer = anna.post(f"{gateway.url}{SESSION}", json=body, timeout=30)
    assert answer.status_code == 200, answer.text
    anna.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return anna


def _furnished(site: Site) -> Site:
    for level, mac in MACS.items():
        place = {"level": level, "location": ROOMS[level], "x": 1, "y": 2}
        assert site.api("PUT", f"/beacons/{mac}", json=place).status_code == 200

    def known() -> bool:  # by both services
        answers = [site.api("GET", "/beacons").json()["data"] for _ in range(4)]
        return {len(pixel) for pixel in answers} == {2}

    eventually(known, 30)
    heard = [
        {"staff_id": staff_id, "mac": MACS["4" if staff_id % 2 else "5"], "rssi": -20}
        for staff_id in range(6)
    ]
    for staff_id, team in ((1, TEAM), (3, OTHERS), (2, "")):
        person = {"name": f"Jane of {ROOMS['4' if staff_id % 2 else '5']}", "team": team}
        assert site.api("PUT", f"/people/{staff_id}", json=person).status_code == 200
    answer = site.api("POST", "/detections", json={"detections": heard})
    assert answer.json()["counts"]["stored"] == len(heard), answer.text
    return site
