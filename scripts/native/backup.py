"""./scripts/backup, and `verify` of it: the database and the spools of a stack without Docker."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from mongo import topology
from mongo.backup import commands, shelves
from mongo.backup.backup import Backup
from mongo.backup.commands import say
from mongo.backup.folder import FolderShelf, locked
from mongo.backup.restoring import restore
from mongo.clients import as_administrator
from mongo.topology import Topology
from scripts.native.layout import DEFAULT_DATA, Layout, StackError
from scripts.native.version import version
from scripts.processes.cluster import Cluster

SCRATCH = ".scratch"


def main() -> None:
    """Run the command; an error ends it with one line and status 1."""
    parser = argparse.ArgumentParser(prog="./scripts/backup", description=__doc__)
    restores = "restore the newest into a database that is deleted afterwards, and compare"
    parser.add_argument("verify", nargs="?", choices=["verify"], help=restores)
    commands.add_folder(parser, "where backups are kept")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="of the stack")
    commands.add_options(parser)
    commands.add_identity(parser)
    options = parser.parse_intermixed_args()
    os.environ["WAYMARK_VERSION"] = version()
    with commands.failures("./scripts/backup"):
        if options.verify:
            verify(options)
        else:
            layout, servers = stack(options.data)
            spools = layout.data / "spool"
            commands.back_up(servers, layout.secrets, spools, layout.data, options)


def stack(data: Path) -> tuple[Layout, Topology]:
    """Return the stack in a folder, and its servers."""
    try:
        layout = Layout.saved(data.resolve())
        if layout is None:
            sys.exit(f"{data} has no stack: ./scripts/up")
        named = topology.load(Path(layout.topology))
    except (StackError, topology.TopologyError) as error:
        sys.exit(str(error))
    return layout, named.on_this_machine(layout.mongod_port)


def verify(options: argparse.Namespace) -> None:
    """Restore a backup into a database that is deleted afterwards, and compare."""
    shelf, name = shelves.chosen(options.folder)
    backup = Backup.opened(shelf.files(name), options.identity)
    # Beside the backup a disk has room for it; of a bucket it is beside the stack's data.
    folder = (shelf.folder if isinstance(shelf, FolderShelf) else options.data.resolve()) / SCRATCH
    say(f"restoring {backup.files} in {folder}")
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder.parent):
        shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
        database = Cluster(topology.load(topology.EMBEDDED), folder)
        with (
            database.running() as cluster,
            as_administrator(cluster.local.users_set, cluster.secrets) as client,
        ):
            restore(client, [], backup, None, say)
    print(f"{backup.files} is good: it was restored, and compared")


if __name__ == "__main__":
    main()
