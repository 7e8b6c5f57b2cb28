"""Two machines on a network of their own: what one publishes, seen from the other."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

AS_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]
STACKS, OTHERS = "192.0.2.1", "192.0.2.2"  # of no network that there is
LISTENS = "0A"  # a state in /proc/net/tcp
# Packets that came for UDP have a socket there as well.
PROTOCOLS = ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")


class Machine:
    """A network namespace; it ends with the test. What is started with `prefix` is in it."""

    def __init__(self, beside: "Machine | None" = None) -> None:
        user, within = AS_ROOT, list[str]()
        if beside and AS_ROOT:
            user, within = [], [*beside.prefix[:2], "--user", "--preserve-credentials"]
        script = "ip link set lo up && echo up && exec cat"
        self._holder = subprocess.Popen(
            [*within, "unshare", *user, "--net", "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout
        assert self._holder.stdout.readline() == b"up\n"
        self.pid = self._holder.pid
        self.prefix: list[str] = ["nsenter", f"--target={self.pid}", "--net"]
        self.prefix += ["--user", "--preserve-credentials"] if AS_ROOT else []

    def __enter__(self) -> Self:
        """Be there already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._holder.communicate()

    def run(self, *command: object, typed: str = "") -> str:
        """Run something in it; return what it prints."""
        done = subprocess.run(
            [*self.prefix, *map(str, command)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def connect(self, address: str, other: "Machine", others: str) -> None:
        """Lay a cable to another one, with an address at each end."""
        peer = ("peer", "name", "cable", "netns", other.pid)
        self.run("ip", "link", "add", "cable", "type", "veth", *peer)
        for machine, own in ((self, address), (other, others)):
            machine.run("ip", "address", "add", f"{own}/24", "dev", "cable")
            machine.run("ip", "link", "set", "cable", "up")

    def listening(self) -> set[tuple[str, int]]:
        """Return the protocol and port of each socket that takes what comes, as the kernel says."""
        sockets = set()
        for protocol in PROTOCOLS:
            lines = Path(f"/proc/{self.pid}/net/{protocol}").read_text().splitlines()[1:]
            for _, local, _, state, *_ in map(str.split, lines):
                if state == LISTENS or not protocol.startswith("tcp"):
                    sockets.add((protocol.removesuffix("6"), int(local.rpartition(":")[2], 16)))
        return sockets
