"""One child process: started, watched, stopped by its pid, inside limits if wanted."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from scripts.processes.control_groups import Limits
from scripts.processes.health import Probe
from scripts.processes.limited_group import LimitedGroup
from scripts.processes.waiting import eventually

HEALTHY_SECONDS = 60.0
STOP_SECONDS = 15.0
LOG_END = 2000  # characters of the log that an error shows


class NotHealthyError(Exception):
    """A process ended or did not become healthy in time; the text has the end of its log."""


class Process:
    """A program in a session of its own, which ends with this process.

    What it prints is added to the file `log`, what it prints as an error to the file `errors` if
    that is given. With `limits` it runs in a control group: the memory limit holds from the first
    byte, the CPU limit from when the process is healthy, as a start is not what is measured.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        errors: Path | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self._log_file = log
        self._errors_file = errors or log
        self.group: LimitedGroup | None = None
        self._command = list(command)
        self._folder = folder
        self._environment = environment
        self._limits = limits
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def pid(self) -> int:
        """The pid of the program, which leads its process group. RuntimeError if not started."""
        return self._started().pid

    @property
    def log(self) -> str:
        """What the program wrote, in this and earlier starts."""
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    def start(self) -> None:
        """Start the program. Raises LimitsUnavailableError where limits cannot be set."""
        if self.running():
            raise RuntimeError(f"{self.name} runs already")
        self.kill()  # what an earlier start left when it ended
        command = ["setpriv", "--pdeathsig", "TERM", *self._command]
        if self._limits:
            self.group = LimitedGroup(self.name, self._limits._replace(cpu=None))
            command = self.group.command(command)
        with self._log_file.open("ab") as log, self._errors_file.open("ab") as errors:
            self._child = subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=errors,
                start_new_session=True,
            )

    def running(self) -> bool:
        """Tell whether the program was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    def wait_until_healthy(self, probe: Probe, seconds: float = HEALTHY_SECONDS) -> None:
        """Wait until the probe finds no problem. Raises NotHealthyError."""
        problem: str | None = None

        def healthy_or_ended() -> bool:
            nonlocal problem
            problem = probe()
            return problem is None or not self.running()

        with contextlib.suppress(TimeoutError):
            eventually(healthy_or_ended, seconds)
        if problem is not None:
            text = self._errors_file.read_text(errors="replace")[-LOG_END:]
            raise NotHealthyError(f"{self.name} ({problem}):\n{text}")
        if self.group and self._limits:
            self.group.limit(self._limits)

    def send_signal(self, number: int) -> None:
        """Send a signal to the program itself, not to its children."""
        self._started().send_signal(number)

    def wait(self, seconds: float) -> int:
        """Return the exit status when it ends. Raises subprocess.TimeoutExpired."""
        return self._started().wait(seconds)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask the program to end, then kill what is left of it; it may be started again."""
        if self._child:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)
        self.kill()

    def kill(self) -> None:
        """Kill -9 the program and its children at once; it may be started again."""
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child = None
        if self.group:
            self.group.close()
            self.group = None

    def _started(self) -> subprocess.Popen[bytes]:
        if not self._child:
            raise RuntimeError(f"{self.name} is not started")
        return self._child
