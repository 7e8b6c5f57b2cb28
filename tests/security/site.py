"""The stacks that are attacked, and what must hold of them in the end."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pymongo import MongoClient
from pymongo.database import Database

from common.schema import DATABASE
from ingest.access.tokens import generate
from mongo import secrets
from scripts.processes.waiting import eventually
from tests.page.conftest import Office
from tests.security.visitors import ELSEWHERE, LEVEL, Visitor, everybody

Running = TypeVar("Running", bound="Site")


class Site(Office):
    """A stack without demo that does not count one client's requests."""

    def __init__(self, root: Path, data: Path) -> None:
        super().__init__(root, data)
        self.environment["GATEWAY_CLIENT_RATE"] = "20000"  # one attacker stands for many
        self.environment["WAYMARK_OWNTRACKS"] = "on"
        self.environment["PLAN_ORIGIN"] = "1.377 103.8"

    @property
    def ports(self) -> dict[str, int]:
        """Where each target listens."""
        return {
            "gateway": self.port,
            "ingest": int(self.environment["WAYMARK_INGEST_PORTS"].split()[0]),
            "monitoring": int(self.environment["WAYMARK_MONITORING_PORT"]),
        }

    def staff(self) -> set[str]:
        """Return everybody of whom a detection was stored."""
        people = self.read("/api/v1/staff").json()
        assert people["complete"]
        return {str(person["staff_id"]) for person in people["data"]}


class Guarded(Site):
    """A stack that requires tokens; its own client is the administrator."""

    def __init__(self, root: Path, data: Path) -> None:
        super().__init__(root, data)
        self.admin = generate()
        digest = hashlib.sha256(self.admin.encode()).hexdigest()
        required = {"WAYMARK_ACCESS": "required", "WAYMARK_ADMIN_TOKEN_SHA256": digest}
        self.environment |= required
        self.session.headers["Authorization"] = f"Bearer {self.admin}"

    @property
    def urls(self) -> list[str]:
        """Return where each ingest service is reached: behind the gateway, and by itself."""
        ports = self.environment["WAYMARK_INGEST_PORTS"].split()
        return [self.url, *(f"http://127.0.0.1:{port}" for port in ports)]

    @property
    def session_key(self) -> str:
        """Return what cookies are signed with."""
        return (self.data / "secrets" / secrets.SESSION_KEY).read_text().strip()

    @cached_property
    def _client(self) -> MongoClient[dict[str, Any]]:
        password = (self.data / "secrets" / secrets.APP_PASSWORD).read_text().strip()
        return MongoClient(
            "127.0.0.1",
            int(self.environment["WAYMARK_MONGOD_PORT"]),
            directConnection=True,
            username=secrets.APP_USER,
            password=password,
            authSource=DATABASE,
        )

    @property
    def database(self) -> Database[dict[str, Any]]:
        """Return what all services share."""
        return self._client[DATABASE]

    def down(self) -> str:
        """End it, and what we held of it."""
        if "_client" in vars(self):
            self._client.close()
        return super().down()

    @cached_property
    def visitors(self) -> list[Visitor]:
        """Return everybody who comes; made once, which takes a minute."""
        self._hear_at(ELSEWHERE, "DDDDDDDDDD01", "another level")
        self._hear_at("somebody-here", "DDDDDDDDDD02", LEVEL)
        return everybody(self)

    def _hear_at(self, staff_id: str, mac: str, level: str) -> None:
        """Let somebody be heard at a new beacon, until a service knows where that is."""
        place = {"level": level, "location": "a spot"}
        assert self.api("PUT", f"/beacons/{mac}", json=place).ok

        def is_there() -> bool:
            self.hear(staff_id, mac)
            return (
                self.database["staff"].find_one({"staff_id": staff_id, "level": level}) is not None
            )

        eventually(is_there, 60, pause_seconds=1)

    @cached_property
    def document(self) -> dict[str, Any]:
        """Return what the stack says of its routes."""
        openapi: dict[str, Any] = self.read("/api/v1/openapi.json").json()
        return openapi

    def stored(self) -> Mapping[str, object]:
        """Return what no stranger may change: how many there are of each, and how they look."""
        names = ("staff", "beacons", "people", "tokens", "accounts")
        return {
            name: sorted(
                str(document) for document in self.database[name].find({}, {"last_used_at": 0})
            )
            for name in names
        }


@contextmanager
def running(site: Running) -> Iterator[Running]:
    """Run a stack, and end it."""
    try:
        site.up()
        yield site
    finally:
        site.down()
