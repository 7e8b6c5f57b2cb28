"""Run NGINX and keep its configuration true: follow names and certificates, reload on a change.

    python3 gateway/start.py

It is what the gateway's container runs, and a part of the native stack. Debian's nginx looks
names up once, at its start, and does not start when one is missing; so it gets addresses only.
Standard library, and little of it: this process shares the gateway's memory limit.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gateway.certificate import Certificate, write_private
from gateway.render import Config, ConfigError, check_exposure, render_all
from gateway.request_log import RequestLog
from gateway.silence import Silence
from gateway.tally import Tally

# A service that moved is used again within 10 s: this, a look-up and a reload.
LOOK_SECONDS = 5.0
CONNECT_SECONDS = 1.0
# With less free than this on its disk, nginx caches nothing: twice what the cache may take.
ROOM_BYTES = 32 * 2**20
PASSED_ON = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}


def find_nginx() -> str:
    """Return the program; it often lies where a user's PATH does not look."""
    for folder in (*os.get_exec_path(), "/usr/sbin", "/usr/local/sbin"):
        if os.access(nginx := f"{folder}/nginx", os.X_OK):
            return nginx
    raise SystemExit("nginx is not installed: sudo apt-get install nginx")


def addresses(service: str) -> list[str] | None:
    """Return every address:port behind name:port; [] if there is none, None if nobody knows now."""
    host, _, port = service.rpartition(":")
    try:
        answers = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return None if error.errno == socket.EAI_AGAIN else []
    # IPv4 when there is any: the IPv6 addresses would be the same services once more.
    of_v4 = {str(at[0]) for family, *_, at in answers if family == socket.AF_INET}
    of_v6 = {f"[{at[0]}]" for family, *_, at in answers if family == socket.AF_INET6}
    return [f"{address}:{port}" for address in sorted(of_v4 or of_v6)]


def listens(address: str) -> bool:
    """Tell whether somebody takes connections there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


class Followed:
    """The configuration with every name replaced by the addresses that it has now."""

    def __init__(self, config: Config, nginx: str) -> None:
        self._config = config
        self._nginx = nginx  # its version
        self._certificate = Certificate(config)
        self._known: dict[str, list[str]] = {}
        self._rendered: tuple[Config, str] | None = None
        self._files: dict[str, str] = {}

    def look(self) -> dict[str, str]:
        """Return the configuration files for the addresses and the certificate of now.

        They are rendered where something changed: that takes 6 to 11 ms, a look 0.03.
        """
        current = self._config._replace(
            ingest=self._addresses(self._config.ingest),
            monitoring=self._addresses(self._config.monitoring),
        )
        certificate = self._certificate.look()
        if self._rendered != (current, certificate):
            self._files = render_all(current, self._nginx, certificate)
            self._rendered = current, certificate
        return self._files

    def expires_at(self) -> float | None:
        """Return until when the certificate is valid, in unix seconds; None: there is none."""
        return self._certificate.expires_at

    def ingest(self) -> list[str]:
        """Return the addresses of the ingest services, as they were looked up last."""
        services = self._config.ingest.split()
        return [address for service in services for address in self._known.get(service, [])]

    def _addresses(self, services: str) -> str:
        known: list[str] = []
        for service in services.split():
            now = addresses(service)
            if now is not None:  # else the name server is away: what was true may still be
                old = self._known.get(service, [])
                # A new one counts when it listens: several that do not would use up all tries of a
                # request. Without any other it counts at once.
                self._known[service] = [
                    address for address in now if address in old or listens(address)
                ] or now
            known += self._known.get(service, [])
        return " ".join(dict.fromkeys(known))


class Gateway:
    """nginx as our only child."""

    def __init__(self, config: Config, prefix: Sequence[str] = ()) -> None:
        nginx = find_nginx()
        version = subprocess.run([nginx, "-v"], capture_output=True, text=True, check=True).stderr
        self._followed = Followed(config, version)
        self._run = Path(config.run)
        self._log_folder = Path(config.log_folder)
        main = str(self._run / "nginx.conf")
        # -p: for the log of requests, whose path may hold characters that mean something to nginx.
        self._command = [*prefix, nginx, "-e", "stderr", "-p", config.log_folder, "-c", main]
        self._written: dict[str, str] = {}
        for folder in (self._run, self._log_folder):
            folder.mkdir(parents=True, exist_ok=True)
        # A killed nginx leaves its socket, and would then not start because of it.
        (self._run / "pollers.sock").unlink(missing_ok=True)
        self._tally = Tally(self._run, self._log_folder, self._followed.expires_at)

    def run(self) -> int:
        """Run nginx until it ends; return the exit status to end with."""
        signals = PASSED_ON | {signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        self._write(self._followed.look())
        self._mark_room()
        silence = Silence(self._run, self._followed.ingest)
        threading.Thread(target=silence.watch, daemon=True).start()
        nginx = os.posix_spawnp(self._command[0], self._command, os.environ, setsigmask=[])
        self._repeat(lambda: self._look_again(nginx))
        log = RequestLog(self._log_folder, lambda: _send(nginx, signal.SIGUSR1))
        self._repeat(self._tally.look, log.look)  # before it is rotated
        while True:
            got = signal.sigwait(signals)
            if got in PASSED_ON:
                _send(nginx, got)
            elif (status := _reaped(nginx)) is not None:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code

    def _mark_room(self) -> None:
        """Keep the file `room`, by which nginx knows that the disk has some."""
        disk, mark = os.statvfs(self._run), self._run / "room"
        if disk.f_bavail * disk.f_frsize < ROOM_BYTES:
            mark.unlink(missing_ok=True)
        else:
            mark.touch()

    def _look_again(self, nginx: int) -> None:
        self._mark_room()
        files = self._followed.look()
        if files != self._written:
            print("gateway: the addresses or the certificate changed: reloading", file=sys.stderr)
            self._write(files)
            _send(nginx, signal.SIGHUP)

    def _repeat(self, *looks: Callable[[], None]) -> None:
        """Look again and again, beside the signals: a look-up can take many seconds."""

        def repeat() -> None:
            while not pause.wait(LOOK_SECONDS):
                for look in looks:
                    try:
                        look()
                    except OSError as error:  # a full disk, say: nginx runs on, and we try again
                        print(f"gateway: {error}", file=sys.stderr)

        pause = threading.Event()
        threading.Thread(target=repeat, daemon=True).start()

    def _write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            write_private(self._run / name, text)
        self._written = files


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has just ended; we hear of it next


def _reaped(nginx: int) -> int | None:
    """Take every ended child (process 1 inherits orphans); return nginx's status if it ended."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == nginx:
                return ended[1]
    except ChildProcessError:
        return 0
    return None


def allow_files(config: Config) -> list[str]:
    """Let NGINX open as many files as it may need; return the warning that it may not."""
    wanted, (now, most) = config.open_files, resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY or most >= wanted:
        return []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, wanted))
    except (ValueError, OSError):  # only root may, and not in each container
        return [
            f"WARNING: GATEWAY_CONNECTIONS={config.connections} needs {wanted} open files, and "
            f"{most} are allowed here (ulimit -Hn; ulimits of a container): it holds fewer"
        ]
    return []


def main(prefix: Sequence[str] = ()) -> None:
    """Run the gateway as the environment says, and end as nginx ends."""
    try:
        config = Config.from_environment()
        warnings = check_exposure(config)
    except ConfigError as error:
        sys.exit(f"gateway: {error}")
    for warning in warnings + allow_files(config):
        print(f"gateway: {warning}", file=sys.stderr, flush=True)
    sys.exit(Gateway(config, prefix).run())


if __name__ == "__main__":
    main()
