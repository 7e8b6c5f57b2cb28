"""What ./scripts/backup and ./scripts/restore do, with Docker and without."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from pymongo.errors import PyMongoError

from common import backup_report
from mongo.backup import shelf, shelves
from mongo.backup.backup import Backup
from mongo.backup.copying import make
from mongo.backup.encryption import Key
from mongo.backup.errors import BackupError
from mongo.backup.folder import locked
from mongo.backup.restoring import restore
from mongo.backup.shelf import Shelf
from mongo.clients import Client, as_administrator
from mongo.data import NewerDataError
from mongo.secrets import Secrets
from mongo.topology import Topology


def back_up(
    topology: Topology,
    secrets: Path,
    spools: Path | None,
    report_folder: Path,
    options: argparse.Namespace,
) -> None:
    """Make a backup, and delete those that need not be kept; tell of it in a file."""
    keep: Sequence[int] = options.keep or (shelf.KEPT if options.scheduled else ())
    public_keys = os.environ.get("WAYMARK_BACKUP_KEY", "")
    version = os.environ.get("WAYMARK_VERSION", "development")
    with locked(report_folder), reported(report_folder, scheduled=options.scheduled):
        kept_in = shelves.shelf(options.folder)
        with _clients(topology, secrets) as (client, *_):
            backup = make(client, kept_in, spools, version, say, public_keys)
        print(f"{backup.files} is whole: {backup.manifest.documents:,} documents")
        for name in shelf.prune(kept_in, keep, backup.files.name) if keep else ():
            print(f"{name} is not kept any longer")


@contextmanager
def reported(folder: Path, *, scheduled: bool) -> Iterator[None]:
    """Tell in a file what becomes of a backup. Who makes one by hand ends no schedule."""
    file = folder / backup_report.FILE_NAME
    last = backup_report.read(file)
    report = backup_report.Report(
        int(time.time()),
        last and last.finished,
        scheduled=scheduled or bool(last and last.scheduled),
    )
    backup_report.write(file, report)
    try:
        yield
    except BaseException as error:
        backup_report.write(file, report._replace(error=str(error) or type(error).__name__))
        raise
    backup_report.write(file, report._replace(finished=int(time.time())))


def restore_newest(
    topology: Topology,
    secrets: Path,
    spools: Path | None,
    options: argparse.Namespace,
    forget_again: Callable[[Backup, Shelf, Key | None], None] = lambda *_: None,
) -> None:
    """Restore the backup at an address, or the newest of several."""
    kept_in, name = shelves.chosen(options.folder)
    backup = Backup.opened(kept_in.files(name), options.identity)
    print(f"restoring {backup.files}", flush=True)
    with kept_in.locked(), _clients(topology, secrets) as clients:
        routers = clients if topology.routers else []
        again = partial(forget_again, backup, kept_in, options.identity)
        restore(clients[0], routers, backup, spools, say, again)
    print(f"{backup.files} is restored, and the database equals it")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of those who make backups."""
    parser.add_argument(
        "--keep",
        type=_count,
        nargs=len(shelf.PERIODS),
        metavar=("DAYS", "WEEKS", "MONTHS"),
        help="then delete all but the newest backups of so many days, weeks and months",
    )
    kept = "{} days, {} weeks and {} months".format(*shelf.KEPT)
    parser.add_argument(
        "--scheduled",
        action="store_true",
        help=f"for schedules: --keep is {kept}, and System warns when none was made for two days",
    )


def add_folder(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the argument that says where backups are."""
    parser.add_argument("folder", help=f"{what}: a folder, or s3://bucket/prefix")


def add_identity(parser: argparse.ArgumentParser) -> None:
    """Add the option with the private key of those who restore."""
    parser.add_argument(
        "--identity",
        type=_identity,
        metavar="FILE",
        help="the private key of an encrypted backup, as age-keygen writes it; -: standard input",
    )


@contextmanager
def failures(name: str) -> Iterator[None]:
    """End the command `name` with one line and status 1 where it fails."""
    os.nice(10)  # detections come first
    try:
        yield
    except (BackupError, NewerDataError, OSError) as error:
        sys.exit(f"{name}: {error}")
    except PyMongoError as error:
        sys.exit(f"{name}: MongoDB: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{name}: interrupted")


def say(text: str) -> None:
    """Tell how far it is."""
    print(f"  {text}", flush=True)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("a whole number")
    return int(text)


def _identity(file: str) -> Key:
    try:
        return Key.of(sys.stdin.read() if file == "-" else Path(file).read_text())
    except (BackupError, OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@contextmanager
def _clients(topology: Topology, secrets: Path) -> Iterator[list[Client]]:
    """Connect as administrator to each router, or to the replica set."""
    read = Secrets.read(secrets)
    with ExitStack() as held:
        entries = topology.routers or (topology.users_set,)
        yield [held.enter_context(closing(as_administrator(entry, read))) for entry in entries]
