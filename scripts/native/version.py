"""Which version of Waymark this checkout is: the Dockerfile says it, for the images' labels too."""

import re

from scripts.processes import ROOT


def version() -> str:
    """Return the version, as in `1.0.0`."""
    match = re.search(
        r"^ARG VERSION=(\S+)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    if not match:
        raise ValueError("the Dockerfile has no line `ARG VERSION=...`")
    return match[1]


if __name__ == "__main__":
    print(version())
