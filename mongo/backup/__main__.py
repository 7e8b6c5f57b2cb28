"""The same for the stack of Docker Compose: `python -m mongo.backup make|restore ADDRESS`."""

import argparse
import sys
from pathlib import Path

from mongo.backup import commands
from mongo.topology import TopologyError, load


def main() -> None:
    """Run the command; an error ends it with one line and status 1."""
    ours = argparse.ArgumentParser(add_help=False)
    ours.add_argument("--topology", type=Path, required=True)
    ours.add_argument("--secrets", type=Path, required=True, help="made by mongo.secrets")
    parser = argparse.ArgumentParser(prog="python -m mongo.backup", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    makes = actions.add_parser("make", parents=[ours])
    makes.add_argument("--report", type=Path, required=True, help="folder that tells of the last")
    commands.add_folder(makes, "where backups are kept")
    commands.add_options(makes)
    restores = actions.add_parser("restore", parents=[ours])
    commands.add_folder(restores, "a backup, or where several are: the newest")
    commands.add_identity(restores)
    options = parser.parse_args()
    try:
        topology = load(options.topology)
    except TopologyError as error:
        sys.exit(str(error))
    with commands.failures(options.action):
        if options.action == "restore":
            commands.restore_newest(topology, options.secrets, None, options)
        else:
            commands.back_up(topology, options.secrets, None, options.report, options)


if __name__ == "__main__":
    main()
