"""supervisord, which starts the parts of a stack and restarts the ones that die."""

import contextlib
import http.client
import itertools
import socket
import subprocess
import sys
import xmlrpc.client
from operator import itemgetter
from pathlib import Path
from typing import Any

import psutil

from scripts.native.configuration import STOP_SECONDS as PART_STOP_SECONDS
from scripts.native.configuration import configuration
from scripts.native.layout import Layout, StackError
from scripts.native.parts import environment
from scripts.processes.waiting import eventually

START_SECONDS = 30.0
STOP_SECONDS = 60.0
ANSWER_SECONDS = 10.0
STOP_ANSWER_SECONDS = PART_STOP_SECONDS + ANSWER_SECONDS  # stopProcess waits for the part


class StalledError(StackError):
    """supervisord runs but does not answer: it was stopped, or the machine is overloaded."""


class LostError(StackError):
    """supervisord ended while somebody relied on it: it was killed, or ran out of memory."""


class _Connection(http.client.HTTPConnection):
    """HTTP through supervisord's Unix socket, with a time-out."""

    def __init__(self, file: Path, timeout_seconds: float) -> None:
        super().__init__("localhost", timeout=timeout_seconds)
        self._file = str(file)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._file)


class _Transport(xmlrpc.client.Transport):
    def __init__(self, file: Path, timeout_seconds: float) -> None:
        super().__init__()
        self._connection_made = _Connection(file, timeout_seconds)

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        self._connection = (host, self._connection_made)  # what its close() closes
        return self._connection_made


class Supervisor:
    """One supervisord for one stack, addressed through its Unix socket."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._socket = layout.run / "supervisor.sock"

    def call(self, method: str, *arguments: object, timeout_seconds: float = ANSWER_SECONDS) -> Any:
        """Call one of supervisord's methods. Raises LostError when none runs, StalledError."""
        transport = _Transport(self._socket, timeout_seconds)
        try:
            with xmlrpc.client.ServerProxy("http://127.0.0.1", transport) as proxy:
                return getattr(proxy.supervisor, method)(*arguments)
        except (ConnectionError, FileNotFoundError, http.client.HTTPException) as error:
            raise self.gone() from error
        except (TimeoutError, BlockingIOError):  # the latter when many wait already
            raise StalledError(
                f"supervisord (pid {self.pid()}) does not answer: `kill -CONT {self.pid()}` if it "
                "was stopped, or ./scripts/down, which ends it and every part"
            ) from None

    def running(self) -> bool:
        """Tell whether this stack has a supervisord, if only one that hangs."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(ANSWER_SECONDS)
            try:
                probe.connect(str(self._socket))
            except (TimeoutError, BlockingIOError):
                return True
            except OSError:
                return False
        return True

    def gone(self) -> LostError:
        """Return what to say when it is not there any more."""
        return LostError(
            "supervisord, which keeps the parts running, is gone: killed, or out of memory? "
            "Unless it comes back by itself, ./scripts/up starts all again "
            f"[{self._layout.log / 'supervisord.log'}]"
        )

    def lost(self) -> bool:
        """Tell whether it was killed: at an orderly end it removes its socket."""
        return self._socket.exists() and not self.running()

    def pid(self) -> int:
        """Return the pid that supervisord left in its file."""
        return int((self._layout.run / "supervisord.pid").read_text())

    def owner(self) -> int | None:
        """Return the user that it runs as; None when it does not run."""
        return self._socket.stat().st_uid if self.running() else None

    def launch(self, *, tied_to_us: bool) -> None:
        """Start supervisord without any part; `tied_to_us`: it ends when this process does."""
        file = self._write_configuration()
        tie = ["setpriv", "--pdeathsig", "TERM"] if tied_to_us else []
        command = [*tie, sys.executable, "-m", "scripts.native.supervisord", "-c", str(file)]
        with (self._layout.log / "supervisord.out").open("w") as output:
            child = subprocess.Popen(
                command,
                cwd=self._layout.run,
                env=environment(self._layout),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            with contextlib.suppress(TimeoutError):
                eventually(lambda: self.running() or child.poll() is not None, START_SECONDS)
        except BaseException:  # Ctrl-C
            child.terminate()
            raise
        if not self.running():
            child.terminate()
            raise StackError(f"supervisord did not start: see {output.name}")

    def take_new_parts(self) -> None:
        """Add the parts that the layout has and a running supervisord has not."""
        self._write_configuration()
        ((added, _, _),) = self.call("reloadConfig")
        for name in added:
            self.call("addProcessGroup", name)

    def shutdown(self) -> None:
        """Stop every part, those that send before those that answer, and supervisord itself."""
        try:
            supervisord = psutil.Process(self.pid())
        except (FileNotFoundError, psutil.NoSuchProcess):
            return  # it has just ended
        # SHUTDOWN_STATE, or no answer any more: another ./scripts/down is stopping it as well.
        with contextlib.suppress(xmlrpc.client.Fault, LostError):
            # Its own list, which may be an older checkout's: the database is first there.
            known = sorted(self.call("getAllConfigInfo"), key=itemgetter("group_prio"))
            names = [str(program["name"]) for program in known]
            services = itertools.dropwhile(lambda name: not name.startswith("ingest-"), names)
            # The database last: the services may still have something to store.
            for name in reversed(list(services)):
                self._stop(name, wait=name in ("demo", "gateway"))
            self.call("shutdown")
        try:
            supervisord.wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            reason = f"supervisord (pid {supervisord.pid}) did not stop in {STOP_SECONDS:.0f} s"
            raise StackError(reason) from None

    def _stop(self, name: str, *, wait: bool) -> None:
        with contextlib.suppress(xmlrpc.client.Fault):  # NOT_RUNNING
            self.call("stopProcess", name, wait, timeout_seconds=STOP_ANSWER_SECONDS)

    def start(self, name: str) -> None:
        """Start a part that is not running."""
        with contextlib.suppress(xmlrpc.client.Fault):  # ALREADY_STARTED
            wait_for_it = False
            self.call("startProcess", name, wait_for_it)

    def info(self, name: str) -> dict[str, Any]:
        """Return supervisord's view of a part: statename, pid, start, now (unix seconds)."""
        info: dict[str, Any] = self.call("getProcessInfo", name)
        return info

    def _write_configuration(self) -> Path:
        file = self._layout.run / "supervisord.conf"
        file.write_text(configuration(self._layout))
        return file
