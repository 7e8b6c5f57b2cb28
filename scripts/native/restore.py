"""./scripts/restore: a backup into the database of a running stack, which is empty."""

import argparse
from functools import partial
from pathlib import Path
from urllib.parse import quote

from common.erasures import FILE_NAME
from mongo.backup import commands, spools
from mongo.backup.backup import Backup
from mongo.backup.encryption import Key
from mongo.backup.errors import BackupError
from mongo.backup.shelf import Shelf
from mongo.secrets import ADMIN_USER, Secrets
from mongo.topology import Topology
from scripts.native import person
from scripts.native.backup import stack
from scripts.native.layout import DEFAULT_DATA, Layout
from scripts.native.tool import settings
from scripts.processes.cluster import connection_string


def main() -> None:
    """Run the command; an error ends it with one line and status 1."""
    parser = argparse.ArgumentParser(prog="./scripts/restore", description=__doc__)
    commands.add_folder(parser, "a backup, or where several are: the newest")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="of the stack")
    commands.add_identity(parser)
    options = parser.parse_args()
    with commands.failures("./scripts/restore"):
        layout, servers = stack(options.data)
        folder, again = layout.data / "spool", partial(forget_again, layout, servers)
        commands.restore_newest(servers, layout.secrets, folder, options, again)


def forget_again(
    layout: Layout, servers: Topology, backup: Backup, shelf: Shelf, key: Key | None
) -> None:
    """Forget whoever was forgotten since a backup, by its list or a newer one beside it.

    As administrator: the services' user may do nothing yet.
    """
    erasures = spools.erasures(shelf, key)
    if not erasures and not (layout.data / "spool" / FILE_NAME).exists():
        return
    password = quote(Secrets.read(layout.secrets).admin_password, safe="")
    uri = connection_string(servers, 0, f"{ADMIN_USER}:{password}@", authSource="admin")
    as_administrator = settings(layout) | {"MONGODB_URI": uri, "MONGODB_USER": ""}
    words = ["again", "--since", str(backup.manifest.at[0]), *["--list"] * bool(erasures)]
    if person.run(layout, as_administrator, words, erasures):
        raise BackupError("who was forgotten since the backup is not forgotten again")


if __name__ == "__main__":
    main()
