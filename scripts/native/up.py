"""./scripts/up: start the stack on 127.0.0.1, part by part, and print what happens."""

import argparse
import fcntl
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.render import Config, ConfigError, check_exposure
from mongo import topology
from scripts.native import data_versions, leftovers, privileges, spools
from scripts.native.configuration import GUARD
from scripts.native.down import down
from scripts.native.layout import DEFAULT_DATA, Layout, StackError
from scripts.native.parts import FAILURES, environment, parts
from scripts.native.startup import DEADLINE_SECONDS, start_all
from scripts.native.supervisor import Supervisor
from scripts.processes import ports

LEFT_SECONDS = 5  # then it is killed, as supervisord was: a kill loses nothing
STOPPING = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Run the command; an error ends it with one line and status 1."""
    parser = argparse.ArgumentParser(prog="./scripts/up", description=__doc__)
    parser.add_argument("--detach", action="store_true", help="return when all is up")
    parser.add_argument("--port", type=int, default=8080, help="the gateway's port (8080)")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder for all data")
    parser.add_argument(
        "--sharded",
        nargs="?",
        type=Path,
        const=topology.SHARDED,
        default=topology.EMBEDDED,
        metavar="FILE",
        help="a sharded cluster, as in mongo/topology.toml or another topology file",
    )
    parser.add_argument(
        "--deadline",
        type=float,
        default=DEADLINE_SECONDS,
        metavar="SECONDS",
        help=f"how long the start may take ({DEADLINE_SECONDS:.0f})",
    )
    old = "the source's architecture, to be compared with: ./scripts/load stand --help"
    parser.add_argument("--old", action="store_true", help=old)  # the script takes it
    parser.add_argument("--demo", action="store_true", help="simulate 14 walking ambassadors")
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)  # the guard's
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leaves nothing behind, as Ctrl-C
    try:
        data = options.data.resolve()
        saved = Layout.saved(data) if options.again else None
        layout = saved or Layout.chosen(data, options.port, options.sharded.resolve())
        if os.geteuid() == 0:
            _leave_root(layout)
        deadline = time.monotonic() + options.deadline
        up(layout, demo=options.demo, detach=options.detach, deadline=deadline)
    except FAILURES as error:
        sys.exit(f"up: {error}")
    except KeyboardInterrupt:
        sys.exit("up: interrupted")


def _leave_root(layout: Layout) -> None:
    """Go on as the stack's own user; where that cannot be, say why."""
    with _locked(layout):
        if reason := privileges.obstacle(layout):
            print(f"  WARNING: everything runs as root: {reason}", flush=True)
            return
        if not Supervisor(layout).running():
            _clear(layout)  # what root's parts left, only root may end
        privileges.hand_over(layout)


def up(layout: Layout, *, demo: bool, detach: bool, deadline: float) -> None:
    """Bring up what is not up yet; on failure nothing that this call started stays running."""
    try:
        check_exposure(Config.from_environment(environment(layout)))
    except ConfigError as error:
        raise StackError(str(error)) from error
    supervisor = Supervisor(layout)
    with _locked(layout):
        already = supervisor.running()
        if already:
            _check_same(layout)
        else:
            _clear(layout)
            spools.release(layout)
            layout.save()
            print(f"  {'database':<12}{data_versions.check(layout)}", flush=True)
        try:
            if already:
                supervisor.take_new_parts()
            else:
                supervisor.launch(tied_to_us=not detach)
            start_all(supervisor, layout, demo=demo, deadline=deadline)
            if detach:
                supervisor.start(GUARD)
        except BaseException:
            if not already:
                _stop(layout)
            raise
    if detach or already:
        _announce(layout, "./scripts/down" + _data_option(layout))
    else:
        _stay(supervisor, layout)


@contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    """Refuse a second `up` on the same data while this one works."""
    layout.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The folder itself: in a folder of another user, root would follow a link in place of a file.
    lock = os.open(layout.run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackError(f"another ./scripts/up is at work in {layout.data}") from None
        yield
    finally:
        os.close(lock)


def _check_same(layout: Layout) -> None:
    saved = Layout.saved(layout.data)
    if saved != layout:
        at = saved.gateway_url if saved else "other ports"
        raise StackError(f"this stack runs already at {at}: ./scripts/down first")


def _clear(layout: Layout) -> None:
    """End what a crash left of this stack, then make sure that every port is free."""
    if old := leftovers.find(layout.data, layout.run):
        print(f"  ending {len(old)} processes that an earlier run left", flush=True)
        leftovers.end(old, signal.SIGTERM, timeout_seconds=LEFT_SECONDS)
    for part in parts(layout):
        if part.port:
            _check_port(part.name, part.port)


def _check_port(name: str, port: int) -> None:
    try:
        if ports.is_free(port):
            return
    except PermissionError as error:
        raise StackError(f"only root may listen on port {port}") from error
    raise StackError(f"{name} needs port {port}, which is taken by {ports.listener(port)}")


def public_address(front: Config, plain: str) -> tuple[str, str]:
    """Return the gateway's address for people, and what `curl` needs to trust it."""
    if not front.tls_certificate or not front.tls_listen.strip():
        return plain, ""
    host, _, port = front.tls_listen.split()[0].rpartition(":")
    if host in ("", "*", "0.0.0.0", "[::]"):  # noqa: S104 - this machine is one of all
        host = "127.0.0.1"
    host = next(iter(f"{front.tls_names} {front.hostnames}".split()), host)
    trust = "" if front.tls_names else f"--cacert {shlex.quote(front.tls_certificate)} "
    return f"https://{host}" + ("" if port == "443" else f":{port}"), trust


def _announce(layout: Layout, how_to_stop: str) -> None:
    example = "newbeacondetect?user_address=0&beacon_address=C2A628384B08&rssi=-20"
    front = Config.from_environment(environment(layout))
    address, trust = public_address(front, layout.gateway_url)
    print(
        f"""
Waymark is up.
  the page        {address}/monitoring
  a detection     curl {trust}'{address}/{example}'
  logs and data   {layout.data}
  health          ./scripts/status{_data_option(layout)}
  stop            {how_to_stop}""",
        flush=True,
    )
    for warning in check_exposure(front):
        print(f"\n{warning}", flush=True)


def _data_option(layout: Layout) -> str:
    return "" if layout.data == DEFAULT_DATA else f" --data {shlex.quote(str(layout.data))}"


def _stay(supervisor: Supervisor, layout: Layout) -> None:
    """Wait for Ctrl-C, SIGTERM or ./scripts/down."""
    asked = threading.Event()
    for number in STOPPING:  # not KeyboardInterrupt: a second one would interrupt the stop itself
        signal.signal(number, lambda *_: asked.set())
    _announce(layout, "Ctrl-C")
    while supervisor.running() and not asked.wait(1):
        pass
    lost = supervisor.lost() and not asked.is_set()
    if lost or asked.is_set():
        print("\nstopping ...", flush=True)
        _stop(layout)  # of lost parts, too, nothing stays
    if lost:
        raise supervisor.gone()


def _stop(layout: Layout) -> None:
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C would leave parts behind
    down(layout.data)


if __name__ == "__main__":
    main()
