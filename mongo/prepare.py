"""What the Docker stack needs before anything else of it starts, and what must not start at all.

python -m mongo.prepare FOLDER [FOLDER=NAME,NAME...]    as mongo.secrets, whose folders it fills
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from mongo import secrets
from mongo.topology import FOLDER

SETTINGS = ("mongod.conf", "mongos.conf")
LOOPBACK = re.compile(r"127\..*|localhost|\[::1\]")
SWAP_STEP_MIB = 512


def exposed(environment: Mapping[str, str]) -> str:
    """Return why others would reach a stack that asks for no tokens, "" when they would not."""
    published = environment["WAYMARK_PUBLISH"]
    others = [] if LOOPBACK.fullmatch(published) else [published]
    others += environment["WAYMARK_TRUSTED_PROXIES"].split()
    guarded = environment["WAYMARK_ACCESS"] == "required"
    if not others or (guarded and environment["WAYMARK_ADMIN_TOKEN_SHA256"]):
        return ""
    return f"other machines would reach it ({' '.join(others)}) without tokens: run ./scripts/configure"


def short_of_memory(meminfo: str, needed_mib: int) -> str:
    """Return what a machine has to get that cannot hold the stack, "" when it can."""
    sizes = dict(re.findall(r"^(\w+): +(\d+) kB$", meminfo, re.MULTILINE))
    has_mib = (int(sizes["MemTotal"]) + int(sizes["SwapTotal"])) // 1024
    if has_mib >= needed_mib:
        return ""
    swap_mib = -(-(needed_mib - has_mib) // SWAP_STEP_MIB) * SWAP_STEP_MIB
    return f"""\
this machine has {has_mib} MiB of memory and swap, and the stack needs {needed_mib}. Add swap:
  sudo fallocate -l {swap_mib}M /waymark.swap && sudo chmod 600 /waymark.swap
  sudo mkswap /waymark.swap && sudo swapon /waymark.swap
  echo '/waymark.swap none swap sw 0 0' | sudo tee -a /etc/fstab
Then: docker compose up -d. WAYMARK_MEMORY_NEEDED=0 in .env starts it all the same."""


def main() -> None:
    """Refuse what must not start; lay secrets and MongoDB's settings where they are read."""
    needed_mib = int(os.environ["WAYMARK_MEMORY_NEEDED"])
    meminfo = Path("/proc/meminfo").read_text()  # the machine's, also in a container
    if refused := exposed(os.environ) or short_of_memory(meminfo, needed_mib):
        sys.exit(refused)
    secrets.main()
    folder = Path(sys.argv[1])
    with secrets.locked(folder):
        for name in SETTINGS:
            secrets.write(folder / name, (FOLDER / name).read_text(), 0o444)


if __name__ == "__main__":
    main()
