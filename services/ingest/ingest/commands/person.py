"""Tell what is kept of a person, and forget it.

`python -m ingest.commands.person export|forget|again|list`.

The settings are the service's own (docs/configuration.md).
"""

import argparse
import sys
import time
from datetime import datetime
from pathlib import Path

from common import erasures
from common.erasures import DamagedList
from ingest.config import Config
from ingest.errors import ParameterError, StoreUnavailable
from ingest.recording.erasure_list import ErasureList
from ingest.recording.forgetting import Forgetting, Stored
from ingest.recording.kept import Kept
from ingest.rules import request_parameters
from ingest.rules.request_parameters import StaffId
from ingest.storage.access.audit import Audit, Entry
from ingest.storage.database.client import Client
from ingest.storage.sealed.damage import leaving_out

# How soon a service deletes what waits in its spool, with a look that fails.
SPOOL_SECONDS = 15.0
LOOK_SECONDS = 0.5


def main() -> None:
    """Run the command; what goes wrong ends it with one line and status 1."""
    options = _parser().parse_args()
    config = Config.from_environment()
    folder = Path(config.spool_file).parent
    client = Client(config)
    try:
        kept = Kept(Stored.of(client), Audit(client.database), folder)
        options.run(options, kept, ErasureList(folder))
    except (ParameterError, StoreUnavailable, DamagedList) as error:
        sys.exit(f"person: {error}")
    finally:
        client.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./scripts/person", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    export = commands.add_parser("export", help="write all that is kept, as a zip file, to stdout")
    export.add_argument("staff_id")
    export.set_defaults(run=_export)
    forget = commands.add_parser("forget", help="delete all that is kept")
    forget.add_argument("staff_id")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    forget.set_defaults(run=_forget)
    again = commands.add_parser("again", help="forget everybody again, in a restored database")
    again.add_argument(
        "--since", type=_moment, required=True, help="the name of the backup, or unix seconds"
    )
    again.add_argument(
        "--list",
        action="store_true",
        help="first take a copy of the list of erasures from the standard input",
    )
    again.set_defaults(run=_again)
    erased = commands.add_parser("list", help="write the list of erasures to stdout")
    erased.set_defaults(run=_list)
    return parser


def _moment(text: str) -> float:
    """Return when a backup of that name was begun, in unix seconds; or such seconds."""
    try:
        if text.isdecimal():
            return float(text)
        return datetime.strptime(text, "%Y-%m-%dT%H-%M-%S%z").timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError("as 2026-11-28T17-24-43Z, or unix seconds") from None


def _export(options: argparse.Namespace, kept: Kept, erasure_list: ErasureList) -> None:  # noqa: ARG001
    if sys.stdout.isatty():
        sys.exit("person: it is a zip file: write it to one, with > person.zip")
    with leaving_out() as left_out:
        kept.write(_staff_id(options), sys.stdout.buffer)
    if left_out:
        how = "docs/configuration.md tells how they are found"
        sys.exit(f"person: damaged blocks that are not in it: {len(left_out)}; {how}")


def _forget(options: argparse.Namespace, kept: Kept, erasure_list: ErasureList) -> None:
    staff_id = _staff_id(options)
    if not options.yes:
        if not sys.stdin.isatty():
            sys.exit("person: nobody can be asked here: --yes says that it is wanted")
        asked = f"Delete all that is kept of staff {staff_id}, for good? (yes) "
        if input(asked).strip() != "yes":
            sys.exit("person: nothing was done")
    forgetting = Forgetting(erasure_list, kept.stored)
    deleted, remaining = forgetting.forget(staff_id, go_on=False)
    while remaining is not None:
        if remaining:
            print(f"{deleted:,} detections are deleted, {remaining:,} remain", flush=True)
        else:
            time.sleep(LOOK_SECONDS)
        more, remaining = forgetting.forget(staff_id, go_on=True)
        deleted += more
    details = {"detections": deleted}
    kept.audit.add(
        Entry(int(time.time()), "command line", "command", "person forgotten", "", details, "")
    )
    print(f"staff {staff_id} is forgotten: {deleted:,} detections are deleted", flush=True)
    _wait_for_spools(kept, staff_id, erasure_list.current().until(staff_id))


def _wait_for_spools(kept: Kept, staff_id: StaffId, until: float) -> None:
    """Return when nothing waits that came until then; SystemExit: a service does not run."""
    end = time.monotonic() + SPOOL_SECONDS
    while any(True for _ in kept.waiting(staff_id, until)):
        if time.monotonic() > end:
            sys.exit("person: the spool of a service that does not run has some: till it starts")
        time.sleep(LOOK_SECONDS)


def _again(options: argparse.Namespace, kept: Kept, erasure_list: ErasureList) -> None:
    if options.list:
        erasure_list.take(erasures.parse(sys.stdin.read()))
    count = Forgetting(erasure_list, kept.stored).forget_again(options.since)
    print(f"{count} people are forgotten again")


def _list(options: argparse.Namespace, kept: Kept, erasure_list: ErasureList) -> None:  # noqa: ARG001
    print(erasure_list.current().text())


def _staff_id(options: argparse.Namespace) -> StaffId:
    return request_parameters.staff_id(vars(options), "staff_id")


if __name__ == "__main__":
    main()
