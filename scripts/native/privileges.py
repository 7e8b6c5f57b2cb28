"""Root gives itself up: the stack runs as the user `waymark`, also when root starts it.

So no part can do to the machine what root can. The folders that the parts write to are that user's;
the folder around them is not, or `waymark` could have root follow a link from there.
"""

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import supervisor

from gateway.render import Config
from scripts.native.layout import Layout, StackError
from scripts.native.parts import environment, parts
from scripts.native.supervisor import Supervisor

USER = "waymark"  # scripts/up makes it
# Prints the first of its arguments that it may neither read nor run (or enter, a folder).
_FIRST_CLOSED = 'for path; do [ -r "$path" ] || [ -x "$path" ] || { echo "$path"; exit; }; done'


def obstacle(layout: Layout) -> str | None:
    """Return why the stack has to run as root; None when it need not."""
    try:
        user = pwd.getpwnam(USER)
    except KeyError:
        return f"there is no user {USER}: useradd --system {USER}"
    if Supervisor(layout).owner() not in (None, user.pw_uid):
        return f"it was not started as the user {USER}: ./scripts/down first"
    look = [*_as(user), "sh", "-c", _FIRST_CLOSED, "sh", *map(str, _needed(layout))]
    looked = subprocess.run(look, capture_output=True, text=True, check=False, cwd="/")
    if looked.returncode:  # in a container without the rights, or a namespace without the user
        return looked.stderr.strip()
    return f"the user {USER} may not read {looked.stdout.strip()}" if looked.stdout else None


def hand_over(layout: Layout) -> NoReturn:
    """Give the stack's folders to its user, and be the same `up` as that user."""
    user, folders = pwd.getpwnam(USER), _folders(layout)
    for folder in folders:
        folder.mkdir(mode=0o700, exist_ok=True)
    give = ["chown", "--recursive", "--no-dereference", f"{USER}:", "--", *map(str, folders)]
    result = subprocess.run(give, capture_output=True, text=True, check=False)
    if result.returncode:
        raise StackError(result.stderr.splitlines()[0])
    # Of an option that is given twice the last counts: here the path that is not relative.
    paths = [f"--data={layout.data}", f"--sharded={layout.topology}"]
    command = [*_as(user), sys.executable, "-m", "scripts.native.up", *sys.argv[1:], *paths]
    os.execvp(command[0], command)


def _as(user: pwd.struct_passwd) -> list[str]:
    """Return the words that run a command as the user, still able to listen on ports below 1024."""
    ids = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    bind = ["--inh-caps=-all,+net_bind_service", "--ambient-caps=-all,+net_bind_service"]
    return ["setpriv", *ids, *bind, "--no-new-privs"]


def _needed(layout: Layout) -> list[Path]:
    """Return what the user has to read beside its own folders."""
    front = Config.from_environment(environment(layout))
    files: list[Any] = [sys.executable, supervisor.__file__, __file__, layout.data, layout.topology]
    files += [part.command[0] for part in parts(layout)]
    files += [file for file in (front.tls_certificate, front.tls_key) if file]
    paths = map(Path, files)
    own = _folders(layout)
    return [path for path in paths if path.is_absolute() and not set(own) & {*path.parents}]


def _folders(layout: Layout) -> list[Path]:
    """Return the folders that the parts write to, and that of ./scripts/certificate."""
    members = [layout.data / part.name for part in parts(layout) if part.database]
    mine = [layout.run, layout.log, layout.secrets, layout.data / "spool"]
    mine += [layout.acme_folder] * layout.acme
    return mine + [folder for folder in (*members, layout.data / "tls") if folder.is_dir()]
