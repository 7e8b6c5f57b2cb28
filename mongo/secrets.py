"""The cluster's secrets: made once, kept in files that only their owner reads.

python -m mongo.secrets FOLDER
"""

import os
import secrets
import sys
from pathlib import Path
from typing import NamedTuple

KEYFILE = "keyfile"
ADMIN_PASSWORD = "admin_password"  # noqa: S105 - the name of a file
APP_PASSWORD = "app_password"  # noqa: S105
ADMIN_USER = "admin"
APP_USER = "waymark"


class Secrets(NamedTuple):
    """What the members of the cluster, its administrator and the services prove themselves with."""

    keyfile: str
    admin_password: str
    app_password: str

    @classmethod
    def read(cls, folder: Path) -> "Secrets":
        """Read the three files of a folder."""
        names = (KEYFILE, ADMIN_PASSWORD, APP_PASSWORD)
        return cls(*((folder / name).read_text().strip() for name in names))

    def __repr__(self) -> str:
        """Never show them in a log or a traceback."""
        return "Secrets(...)"


def ensure(folder: Path) -> list[str]:
    """Make the files that are missing; return their names."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A key file may hold 6 to 1024 base64 characters; 48 bytes make 64 of its alphabet.
    wanted = {KEYFILE: 48, ADMIN_PASSWORD: 24, APP_PASSWORD: 24}
    missing = {name: size for name, size in wanted.items() if not (folder / name).exists()}
    for name, size in missing.items():
        text = secrets.token_urlsafe(size).replace("-", "+").replace("_", "/")
        # Written aside and renamed: a crash leaves no half secret that looks whole.
        aside = folder / f".{name}.{os.getpid()}"
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w") as file:
            file.write(text)
        aside.rename(folder / name)
    return list(missing)


if __name__ == "__main__":
    made = ensure(Path(sys.argv[1]))
    print(f"made {', '.join(made)}" if made else "all secrets are there")
