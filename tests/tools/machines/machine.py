"""A new machine: a clean root file system with a network, processes and mounts of its own."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Self

import psutil

from scripts.processes import ROOT

CACHE = ROOT / ".cache" / "machines"
HERE = Path(__file__).parent
NETWORK = "10.214.{}"  # of each machine a /24; its address is .2, that of this machine .1
# What lets it out; a Docker engine forbids all that it does not know.
RULES = (
    ("nat", "POSTROUTING", "-s", "MASQUERADE"),
    ("filter", "FORWARD", "-s", "ACCEPT"),
    ("filter", "FORWARD", "-d", "ACCEPT"),
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER = "walker"
# Where the way out has certificates of its own, pip, npm and their like have to know them.
CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
BUNDLE = "/etc/certificates-of-the-tests.crt"
PASSED = ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


class Machine:
    """A machine with a release of Debian or Ubuntu; it goes away with the context.

    `number` tells its network from another one's.
    """

    def __init__(self, release: str, number: int, folder: Path) -> None:
        self._base = CACHE / release
        self._name = f"waymark-{number}"
        self._network = NETWORK.format(number)
        self._folder = folder
        self.root = folder / "root"
        self.changed = folder / "changed"  # what differs from the clean root
        self._holder: subprocess.Popen[bytes] | None = None
        self._settings = {name: os.environ[name] for name in PASSED if name in os.environ}

    def __enter__(self) -> Self:
        """Start it."""
        if not self._base.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            subprocess.run([HERE / "make-root", self._base.name, self._base], check=True)
        try:
            self._connect()
            self._boot()
            self._settle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End everything of it."""
        if self._holder:
            self._holder.communicate()
        for undo in (
            *(self._rule("-D", *rule) for rule in RULES),
            ["ip", "link", "delete", self._name],
            ["ip", "netns", "delete", self._name],
        ):
            subprocess.run(undo, check=False, capture_output=True)

    def _connect(self) -> None:
        """Lay a cable to it, and let it out into the network."""
        network, name = self._network, self._name
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", self._name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "address", "add", f"{network}.1/24", "dev", self._name)
        _run("ip", "link", "set", self._name, "up")
        within = ["ip", "-n", name]
        _run(*within, "address", "add", f"{network}.2/24", "dev", "eth0")
        _run(*within, "link", "set", "eth0", "up")
        _run(*within, "link", "set", "lo", "up")
        _run(*within, "route", "add", "default", "via", f"{network}.1")
        for rule in RULES:
            _run(*self._rule("-I", *rule))

    def _rule(self, do: str, table: str, chain: str, side: str, target: str) -> list[str]:
        where = [do, chain, side, f"{self._network}.0/24"]
        return ["iptables", "-t", table, *where, "-j", target]

    def _boot(self) -> None:
        """Start its first process, which waits and buries the dead: bash does."""
        root = shlex.quote(str(self.root))
        upper, work = self.changed, self._folder / "work"
        for folder in (self.root, upper, work):
            folder.mkdir(parents=True)
        layers = f"lowerdir={self._base},upperdir={upper},workdir={work}"
        script = f"""set -e
        mount -t overlay -o {shlex.quote(layers)} machine {root}
        mount -t proc proc {root}/proc; mount --rbind /sys {root}/sys; mount --rbind /dev {root}/dev
        for folder in run dev/shm; do mount -t tmpfs -o mode=1777 tmpfs {root}/$folder; done
        exec chroot {root} bash -c 'echo up; while read -r line; do :; done'"""
        private = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", script]
        self._holder = subprocess.Popen(
            ["ip", "netns", "exec", self._name, *private],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout
        assert self._holder.stdout.readline() == b"up\n"
        (first,) = psutil.Process(self._holder.pid).children()
        self._first = first.pid
        spaces = ["--mount", "--pid", "--net", "--root", "--wd"]
        self._enter = ["nsenter", f"--target={first.pid}", *spaces]

    def _settle(self) -> None:
        """Make it this network's, and give it a user with sudo."""
        self.write("/etc/resolv.conf", Path("/etc/resolv.conf").read_bytes())
        for name in CERTIFICATES:
            if name in os.environ:
                self._settings[name] = BUNDLE
                self.write(BUNDLE, Path(os.environ[name]).read_bytes())
        self.run(f"useradd --create-home --shell /bin/bash {USER}")
        self.write(f"/etc/sudoers.d/{USER}", f"{USER} ALL=(ALL) NOPASSWD:ALL\n".encode())
        self.run("echo 127.0.0.1 localhost $(hostname) >/etc/hosts")

    def write(self, path: str, content: bytes) -> None:
        """Write a file."""
        quoted = shlex.quote(path)
        script = f"mkdir -p $(dirname {quoted}) && cat >{quoted}"
        subprocess.run([*self._enter, "bash", "-c", script], input=content, check=True)

    def check_out(self, folder: str, owner: str) -> None:
        """Put this checkout there, as `git clone` would: without what git does not know."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
        there = [
            name for name in names.split(b"\0") if name and (ROOT / os.fsdecode(name)).exists()
        ]
        tar = ["tar", "--null", "--files-from=-", "--create", "--owner=0", "--group=0"]
        packed = subprocess.run(
            tar, cwd=ROOT, input=b"\0".join(there), capture_output=True, check=True
        )
        unpack = f"mkdir -p {folder} && tar -x -C {folder} && chown -R {owner}: {folder}"
        subprocess.run([*self._enter, "bash", "-c", unpack], input=packed.stdout, check=True)

    def run(
        self, script: str, user: str = "root", timeout: float = 600, *, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run something as a user who has just logged in."""
        home = "/root" if user == "root" else f"/home/{user}"
        settings = self._settings | {"HOME": home, "USER": user, "PATH": PATH, "LANG": "C.UTF-8"}
        command = ["bash", "-c", script]
        if user != "root":
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]
        pairs = [f"{name}={value}" for name, value in settings.items()]
        done = subprocess.run(
            [*self._enter, "env", "-i", *pairs, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
        )
        assert not check or done.returncode == 0, f"{script}:\n{done.stdout[-6000:]}"
        return done

    def files(self) -> set[str]:
        """Return the files that the clean root had not, or had otherwise."""
        files = (file for file in self.changed.rglob("*") if not file.is_dir())
        return {f"/{file.relative_to(self.changed)}" for file in files}

    def processes(self) -> list[str]:
        """Return what runs there, but for the first process."""
        spaces = {process.pid: _space(process.pid) for process in psutil.process_iter()}
        ours = _space(self._first)
        return [
            " ".join(psutil.Process(pid).cmdline())
            for pid, space in spaces.items()
            if space == ours and pid != self._first
        ]


def _space(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:  # it has just ended
        return ""
