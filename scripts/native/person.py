"""./scripts/person: the ingest service's command, then what only the administrator may do."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pymongo.errors import PyMongoError

from common.erasures import FILE_NAME, DamagedList, parse
from mongo import forget, topology
from mongo.secrets import Secrets
from scripts.native.layout import Layout
from scripts.native.parts import FAILURES
from scripts.native.tool import chosen

FORGETS = ("forget", "again")


def main() -> None:
    """Run the command; where it forgets somebody, so does the audit."""
    layout, settings, words = chosen()
    sys.exit(run(layout, settings, words))


def run(
    layout: Layout,
    settings: Mapping[str, str],
    words: Sequence[str],
    standard_input: bytes | None = None,
) -> int:
    """Run it with words; return its status. SystemExit: the audit still tells of somebody."""
    spools = layout.data / "spool"
    # As whoever runs the services, and where: it writes beside the spools, and opens these.
    owner = spools.stat() if os.geteuid() == 0 else None
    done = subprocess.run(
        [sys.executable, "-m", "ingest.commands.person", *words],
        env=settings,
        cwd=layout.run,
        check=False,
        user=owner and owner.st_uid,
        group=owner and owner.st_gid,
        extra_groups=[] if owner else None,
        input=standard_input,  # None: it asks whoever sits there
    )
    list_file = spools / FILE_NAME
    if words[:1] and words[0] in FORGETS and not done.returncode and list_file.exists():
        try:
            forget.forget(
                parse(list_file.read_text()),
                topology.load(Path(layout.topology)).on_this_machine(layout.mongod_port),
                Secrets.read(layout.secrets),
            )
        except (*FAILURES, DamagedList) as error:
            sys.exit(f"person: the audit is not done: {error}")
        except PyMongoError as error:
            sys.exit(f"person: the audit is not done: MongoDB refused: {error}")
    return done.returncode


if __name__ == "__main__":
    main()
