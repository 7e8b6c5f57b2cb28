"""What only the administrator may do once people are forgotten: the audit tells of them no more.

python -m mongo.forget [FILE] --topology mongo/topology.toml --secrets FOLDER

FILE is the list of erasures; without one it comes by the standard input (./scripts/person list).
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from bson import Timestamp
from pymongo.errors import PyMongoError

from common import erasures, schema
from common.audit_events import FORGOTTEN, OF_A_PERSON
from common.erasures import DamagedList, Erasures
from mongo import clients, replica_set
from mongo.secrets import Secrets
from mongo.topology import Topology, TopologyError, load

# How many entries are changed with one command.
PIECE = 500


class Oplog(NamedTuple):
    """A replica set's log of writes: since when it has them, and how many times over it fits."""

    name: str
    since: datetime
    now: datetime
    room: float  # 1: it is full, and loses its oldest with each write

    def __str__(self) -> str:
        """Say until when what was deleted may stand there."""
        gone = self.now + (self.now - self.since) * max(1.0, self.room)
        return (
            f"{self.name}: the oplog has writes since {self.since:%Y-%m-%d %H:%M} UTC; at this pace"
            f" those until now are gone by {gone:%Y-%m-%d %H:%M}"
        )


def forget(known: Erasures, topology: Topology, secrets: Secrets) -> None:
    """Do it, and say what remains for how long. Raises PyMongoError."""
    entry = topology.routers[0] if topology.routers else topology.users_set
    with clients.as_administrator(entry, secrets) as client:
        count = clean_audit(client[schema.DATABASE], known)
    print(f"{count} entries of the audit tell of nobody now")
    for oplog in oplogs(topology, secrets):
        print(oplog)


def clean_audit(database: Any, known: Erasures) -> int:
    """Let entries tell of nobody who was forgotten since; return how many. Raises PyMongoError."""
    audit = database[schema.AUDIT.name]
    of_people = {"what": {"$in": list(OF_A_PERSON)}, "of": {"$ne": FORGOTTEN}}
    ids = [
        entry["_id"]
        for entry in audit.find(of_people, {"of": 1, "at": 1})
        if known.covers(entry["of"], entry["at"])
    ]
    for first in range(0, len(ids), PIECE):
        these = {"_id": {"$in": ids[first : first + PIECE]}}
        audit.update_many(these, {"$set": {"of": FORGOTTEN, "details": {}}})
    return len(ids)


def oplogs(topology: Topology, secrets: Secrets) -> Iterator[Oplog]:
    """Yield those of all replica sets that have a primary. Raises PyMongoError."""
    for members in topology.sets:
        primary = replica_set.primary_of(members)
        if primary is None:
            continue
        with clients.as_system(primary, secrets) as client:
            log = client.local["oplog.rs"]
            first, last = (_time(log.find_one(sort=[("$natural", way)])) for way in (1, -1))
            stats = client.local.command("collStats", "oplog.rs")
            yield Oplog(members.name, first, last, stats["maxSize"] / max(1, stats["size"]))


def _time(entry: dict[str, Any] | None) -> datetime:
    stamp: Timestamp = entry["ts"] if entry else Timestamp(0, 0)
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=stamp.time)


def main() -> None:
    """Run the command; what goes wrong ends it with one line and status 1."""
    parser = argparse.ArgumentParser(prog="python -m mongo.forget", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--topology", type=Path, default=Path("mongo/topology.toml"))
    parser.add_argument("--secrets", type=Path, default=Path("/secrets"))
    parser.add_argument("--local-port", type=int, help="every server on 127.0.0.1, from here on")
    options = parser.parse_args()
    try:
        known = erasures.parse(options.file.read_text() if options.file else sys.stdin.read())
        topology, secrets = load(options.topology), Secrets.read(options.secrets)
        if options.local_port:
            topology = topology.on_this_machine(options.local_port)
        forget(known, topology, secrets)
    except (DamagedList, TopologyError, OSError) as error:
        sys.exit(f"forget: {error}")
    except PyMongoError as error:
        sys.exit(f"forget: MongoDB refused: {error}")


if __name__ == "__main__":
    main()
