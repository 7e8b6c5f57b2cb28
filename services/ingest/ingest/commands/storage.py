"""Tell what detections take of the disks, and how long these last; or seal now what is old.

`python -m ingest.commands.storage [seal --older-than SECONDS]`.

The settings are the service's own (docs/configuration.md).
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator

from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.recording.sealing import Piece, Sealer
from ingest.rules.disk_use import LOW_DAYS, DiskUse, Kept
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.client import Client
from ingest.storage.database.cluster_usage import Cluster
from ingest.storage.people.latest import Latest
from ingest.storage.sealed.border import Border
from ingest.storage.sealed.sealed import GRACE_SECONDS, Sealed

NOT_KNOWN = "not known yet"
PROGRESS_SECONDS = 5.0


def main() -> None:
    """Print the figures, or seal; status 1 where a disk is nearly full, or nothing can be read."""
    options = _parser().parse_args()
    config = Config.from_environment()
    client = Client(config)
    try:
        if options.command == "seal":
            _Everybody(client).seal(options.older_than)
        else:
            _tell(client, config)
    except StoreUnavailable as error:
        sys.exit(f"storage: {error}")
    finally:
        client.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./scripts/storage", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    seal = commands.add_parser("seal", help="seal now what is old")
    what = "age of what is sealed: what is younger stays as it is"
    seal.add_argument("--older-than", type=_seconds, required=True, metavar="SECONDS", help=what)
    return parser


def _seconds(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("a whole number of seconds")
    return int(text)


class _Everybody:
    """Seals everybody's detections at once, and tells how far it is."""

    def __init__(self, client: Client) -> None:
        self._latest = Latest(client.latest)
        self._border = Border(client.database)
        self._sealer = Sealer(Sealed(client.staff), self._border)

    def seal(self, older_than: int) -> None:
        """Seal what is older than so many seconds, wait, and delete the rows of what is sealed.

        The services may do the same meanwhile. Whoever ends it loses nothing: they go on.
        Raises StoreUnavailable.
        """
        before = self._border.now() - older_than
        self._border.move(before)
        sealed = self._each(lambda staff_id: self._sealer.all_of(staff_id, before)).sealed
        while sealed:
            print(f"{sealed:,} detections are sealed; their rows go in {GRACE_SECONDS} s")
            until = self._border.now() + GRACE_SECONDS
            while self._border.now() <= until:
                time.sleep(1)
            sealed = self._each(self._sealer.settled).sealed  # what came late
        print("all is sealed that may be")

    def _each(self, pieces: Callable[[StaffId], Iterator[Piece]]) -> Piece:
        """Do all pieces of everybody; return what was done."""
        number, people, done = 0, self._latest.count(), Piece()
        told_at = time.monotonic()
        staff_id = self._latest.next_after(None)
        while staff_id is not None:
            number += 1
            for piece in pieces(staff_id):
                done = Piece(done.sealed + piece.sealed, done.deleted + piece.deleted)
                if time.monotonic() > told_at + PROGRESS_SECONDS:
                    told_at = time.monotonic()
                    print(f"{number} of {people} people: {_words(done)}", flush=True)
            staff_id = self._latest.next_after(staff_id)
        print(f"{number} people: {_words(done)}", flush=True)
        return done


def _words(done: Piece) -> str:
    return f"{done.sealed:,} detections sealed, {done.deleted:,} rows deleted"


def _tell(client: Client, config: Config) -> None:
    cluster = Cluster(client.staff)
    shards = cluster.shards()
    for name, rows, sealed in shards:
        print(f"{name}: {_kept(rows)} in rows; {_kept(sealed)} sealed")
    use = cluster.disk_use(shards, time.time(), config.retention_days, config.seal_hours)
    if use is None:
        sys.exit("storage: no server of the database tells of its disk")
    print("\n".join(_lines(use)))
    if use.is_low:
        sys.exit(
            f"storage: a disk is full in less than {LOW_DAYS} days: make room, or a larger one"
        )


def _lines(use: DiskUse) -> list[str]:
    each, a_day, left = use.detection_bytes, use.detections_a_day, use.days_left
    never = use.retention_days and each is not None and a_day is not None
    return [
        f"kept: {f'{use.retention_days} days' if use.retention_days else 'for ever'}",
        f"sealed: {f'after {use.seal_hours} hours' if use.seal_hours else 'never'}",
        f"a detection: {_each(each)}",
        f"a sealed one: {_each(use.sealed_bytes)}",
        f"a day: {NOT_KNOWN if a_day is None else f'{a_day:,.0f} detections'}",
        f"free: {_megabytes(use.free_bytes)}",
        f"full in: {f'{left:,.0f} days' if left is not None else 'never' if never else NOT_KNOWN}",
    ]


def _kept(kept: Kept) -> str:
    return f"{kept.detections:,} detections, {_megabytes(kept.bytes + kept.index_bytes)}"


def _each(count: float | None) -> str:
    return NOT_KNOWN if count is None else f"{count:.1f} bytes"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


if __name__ == "__main__":
    main()
