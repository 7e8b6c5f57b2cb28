"""supervisord, which starts the parts of a stack and restarts the ones that die."""

import contextlib
import http.client
import shlex
import socket
import subprocess
import sys
import time
import xmlrpc.client
from pathlib import Path
from typing import Any

import psutil

from scripts.native import parts
from scripts.native.layout import Layout, StackError

# Paths are relative to the folder `run`, where supervisord and all parts work: the user's own
# path may hold what means something in this file (%, #, ;).
_HEADER = """\
[supervisord]
nodaemon=true
logfile=../log/supervisord.log
pidfile=supervisord.pid
childlogdir=../log
[unix_http_server]
file=supervisor.sock
chmod=0600
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""

# `setpriv --pdeathsig` ends a part when supervisord is killed: nothing is ever orphaned.
_PROGRAM = """\
[program:{name}]
command=setpriv --pdeathsig TERM {command}
environment={environment}
priority={priority}
autostart=false
autorestart=true
startsecs=1
startretries=1000
stopsignal={stop_signal}
stopwaitsecs=30
killasgroup=true
redirect_stderr=true
stdout_logfile=../log/{name}.log
stdout_logfile_maxbytes=5MB
stdout_logfile_backups=1
"""

START_SECONDS = 30.0
STOP_SECONDS = 60.0
ANSWER_SECONDS = 10.0
# stopProcess may wait for a part as long as `stopwaitsecs` says.
STOP_ANSWER_SECONDS = 40.0


class StalledError(StackError):
    """supervisord is there but does not answer: stopped, or the machine is out of breath."""


class _Connection(http.client.HTTPConnection):
    """HTTP through supervisord's Unix socket, with an end to all waiting."""

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
        self._made = _Connection(file, timeout_seconds)

    def make_connection(self, host: object) -> http.client.HTTPConnection:  # noqa: ARG002
        return self._made


class Supervisor:
    """One supervisord for one stack, addressed through its Unix socket."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._socket = layout.run / "supervisor.sock"

    def call(self, method: str, *arguments: object, timeout_seconds: float = ANSWER_SECONDS) -> Any:
        """Call one of supervisord's methods; OSError when none runs, StalledError when it hangs."""
        transport = _Transport(self._socket, timeout_seconds)
        try:
            with xmlrpc.client.ServerProxy("http://127.0.0.1", transport) as proxy:
                return getattr(proxy.supervisor, method)(*arguments)
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

    def pid(self) -> int:
        """Return the pid that supervisord left in its file."""
        return int((self._layout.run / "supervisord.pid").read_text())

    def launch(self, *, tied_to_us: bool) -> None:
        """Start supervisord without any part; `tied_to_us`: it ends when this process does."""
        configuration = str(self._write_configuration())
        tie = ["setpriv", "--pdeathsig", "TERM"] if tied_to_us else []
        command = [*tie, sys.executable, "-m", "supervisor.supervisord", "-c", configuration]
        with (self._layout.log / "supervisord.out").open("w") as output:
            child = subprocess.Popen(
                command,
                cwd=self._layout.run,
                env=parts.environment(self._layout),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_SECONDS
        try:
            while not (up := self.running()) and child.poll() is None:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.05)
        except BaseException:  # Ctrl-C
            child.terminate()
            raise
        if not up:
            child.terminate()
            raise StackError(f"supervisord did not start: see {output.name}")

    def take_new_parts(self) -> None:
        """Make a running supervisord know parts that were added to the layout."""
        self._write_configuration()
        ((added, _, _),) = self.call("reloadConfig")
        for name in added:
            self.call("addProcessGroup", name)

    def shutdown(self) -> None:
        """Stop every part, those that send before those that answer, and supervisord itself."""
        try:
            supervisord = psutil.Process(self.pid())
        except (FileNotFoundError, psutil.NoSuchProcess):
            return  # it has ended meanwhile
        # SHUTDOWN_STATE, or no answer any more: somebody else is stopping it as well.
        with contextlib.suppress(xmlrpc.client.Fault, ConnectionError, FileNotFoundError):
            for part in reversed(parts.parts(self._layout)):
                if not part.database:  # last: the services may still have something to store
                    self._stop(part.name, wait=part.name in ("demo", "gateway"))
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
        configuration = self._layout.run / "supervisord.conf"
        configuration.write_text(self._configuration())
        return configuration

    def _configuration(self) -> str:
        sections = [_HEADER]
        for priority, part in enumerate(parts.parts(self._layout), start=1):
            pairs = (f'{key}="{value}"' for key, value in part.environment.items())
            sections.append(
                _PROGRAM.format(
                    name=part.name,
                    command=_value(shlex.join(part.command)),
                    environment=_value(",".join(pairs)),
                    priority=priority,
                    stop_signal="QUIT" if part.name == "gateway" else "TERM",  # nginx: finish first
                )
            )
        return "\n".join(sections)


def _value(text: str) -> str:
    """Escape what supervisord expands or takes for a comment; `''` ends and reopens a quote."""
    return text.replace("%", "%%").replace(" #", " ''#").replace(" ;", " '';")
