"""What comes before everything else of the Docker stack: can it run here, and its secrets.

python -m mongo.prepare FOLDER [FOLDER=NAME,NAME...]    folders as those of mongo.secrets
"""

import os
import re
import sys
from pathlib import Path

from mongo import processor, secrets
from mongo.topology import FOLDER

SETTINGS = ("mongod.conf", "mongos.conf")
# What the programs' texts take beyond what is needed: without it, a busy stack reads them again and
# again from its disk.
EASE_MIB = 200
SWAP_MIB = 512


def memory_mib(meminfo: str) -> int:
    """Return how much memory and swap a machine has, from what its kernel tells."""
    sizes = dict(re.findall(r"^(\w+): +(\d+) kB$", meminfo, re.MULTILINE))
    return (int(sizes["MemTotal"]) + int(sizes["SwapTotal"])) // 1024


def advice(has_mib: int, wanted_mib: int) -> str:
    """Return the commands that add as much swap as is missing.

    Written, not reserved: of some kernels and file systems `swapon` refuses what fallocate made.
    """
    swap_mib = -(-(wanted_mib - has_mib) // SWAP_MIB) * SWAP_MIB
    return f"""\
this machine has {has_mib} MiB of memory and swap; the stack wants {wanted_mib}. Add swap:
  sudo dd if=/dev/zero of=/waymark.swap bs=1M count={swap_mib} && sudo chmod 600 /waymark.swap
  sudo mkswap /waymark.swap && sudo swapon /waymark.swap
  echo '/waymark.swap none swap sw 0 0' | sudo tee -a /etc/fstab"""


def refusal() -> str:
    """Return why the stack would not run here, "" where it would; advise where it would be slow."""
    # mongod would be started for ever, and end at once each time. Other images may be others.
    lacking = processor.lacks()
    if lacking and os.environ["MONGO_IMAGE"].startswith("mongo:"):
        return f"this processor lacks {lacking}, which MongoDB 5.0 and newer need"
    try:
        needed_mib = int(os.environ["WAYMARK_MEMORY_NEEDED"])
    except ValueError:
        return "WAYMARK_MEMORY_NEEDED is no number of MiB"
    has_mib = memory_mib(Path("/proc/meminfo").read_text())  # the machine's, also in a container
    if has_mib < needed_mib + EASE_MIB:
        print(advice(has_mib, needed_mib + EASE_MIB), file=sys.stderr)
    if has_mib < needed_mib:
        return f"it starts from {needed_mib} on; WAYMARK_MEMORY_NEEDED=0 tries all the same"
    return ""


def main() -> None:
    """Refuse a first start that must fail; lay secrets and settings where they are read."""
    folder = Path(sys.argv[1])
    why_not = refusal()
    if why_not and not (folder / secrets.KEYFILE).exists():
        sys.exit(why_not)
    if why_not:
        # It has run here. Docker Compose has made containers anew by now, and would start none.
        print(f"{why_not}. It has run here, so it goes on", file=sys.stderr)
    secrets.main()
    with secrets.locked(folder):
        for name in SETTINGS:
            secrets.write(folder / name, (FOLDER / name).read_text(), 0o444)


if __name__ == "__main__":
    main()
