"""The stack that is attacked, and what must hold of it in the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.page.conftest import Office

# One attacker stands for many.
RATE = "20000"


class Site(Office):
    """A stack without demo that does not count one client's requests."""

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
        found = self.read("/api/v1/staff").json()
        assert found["complete"]
        return {str(one["staff_id"]) for one in found["data"]}


@contextmanager
def running_site(root: Path, folder: Path) -> Iterator[Site]:
    """Run a stack with all its data in a folder."""
    site = Site(root, folder / "data")
    site.environment["GATEWAY_CLIENT_RATE"] = RATE
    try:
        site.up()
        yield site
    finally:
        site.down()
