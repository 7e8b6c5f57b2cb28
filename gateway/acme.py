"""Get the gateway's certificate from an ACME authority, and the next one before it expires.

    python3 gateway/acme.py

The client is dehydrated, which runs for some seconds every few weeks; this program knows when.
The gateway serves the proofs that the client lays into the folder, and takes the certificate from
there.
"""

import fcntl
import math
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from calendar import timegm
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import settings as environment_settings
from gateway.render import CERTIFICATE, CERTIFICATES, CHALLENGES, Config, ConfigError

LONGEST_PAUSE_SECONDS = 6 * 3600  # between two tries
LONGEST_NAP_SECONDS = 12 * 3600  # between two looks at the certificate
CLIENT_SECONDS = 900
TRIES = 5  # at once: where an authority wants another nonce, dehydrated before 0.7.2 gives up
_RANDOM = random.SystemRandom()
# The sizes are of the account's key: a small box looks half a minute for one of 4096 bits.
_CLIENT = """\
CA={directory}
CONTACT_EMAIL={email}
BASEDIR={folder}
DOMAINS_TXT={folder}/names
WELLKNOWN={folder}/{challenges}
CERTDIR={folder}/{certificates}
KEY_ALGO=prime256v1
KEYSIZE=2048
ACCOUNT_KEYSIZE=2048
AUTO_CLEANUP=yes
CURL_OPTS="--connect-timeout 10 --max-time 60"
"""
# What the client says, and what to do then.
_ADVICE = {
    "Problem connecting to server": "the authority does not answer: check this machine's way to it "
    "and its clock, and ACME_DIRECTORY and ACME_CA_FILE",
    "rateLimited": "the authority has had too many requests for these names: wait",
    "acme:error:(dns|connection|unauthorized|caa)": "the authority did not find our proof: each "
    "name has to lead to this machine in the DNS, and its port 80 to the gateway's plain port",
    "rejectedIdentifier": "the authority does not give certificates for such a name",
}


class Settings(NamedTuple):
    """Settings of the client, each `ACME_` and its name; docs/configuration.md lists them."""

    directory: str = "https://acme-v02.api.letsencrypt.org/directory"  # the authority's address
    email: str = ""  # where the authority may write to
    ca_file: str = ""  # file with the certificates that prove the authority; empty: the system's
    retry_seconds: int = 120  # pause after the first failure; it doubles up to 6 hours

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read the settings that are given. Raises ConfigError when one cannot be."""
        values = {name: text for name, text in environment.items() if text}
        try:
            read = environment_settings.read(
                cls._field_defaults, values, {}, lambda name: f"ACME_{name.upper()}"
            )
        except ValueError as error:
            raise ConfigError(str(error)) from error
        settings = cls(**read)
        if settings.retry_seconds < 1:
            raise ConfigError("ACME_RETRY_SECONDS must be 1 or more")
        return settings


class Held(NamedTuple):
    """The certificate that is there: its names and its time, in seconds since 1970."""

    names: set[str]
    begin: float
    end: float

    @classmethod
    def read(cls, file: Path) -> "Held | None":
        """Return what the file says; None when it is not there or holds no certificate."""
        if not file.exists():
            return None
        command = ["openssl", "x509", "-noout", "-dates", "-ext", "subjectAltName"]
        command += ["-in", str(file)]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        dates = dict(re.findall(r"^(notBefore|notAfter)=(.*)$", said, re.MULTILINE))
        if len(dates) < 2:
            return None
        begin, end = (_seconds(dates[name]) for name in ("notBefore", "notAfter"))
        return cls(set(re.findall(r"DNS:([^\s,]+)", said)), begin, end)

    def until(self) -> str:
        """Return when it ends, for people."""
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.end))


def _seconds(date: str) -> float:
    return timegm(time.strptime(date, "%b %d %H:%M:%S %Y %Z"))


class Acme:
    """Keeps one certificate for all names."""

    def __init__(self, config: Config, settings: Settings) -> None:
        self._names = config.tls_names.split()
        self._folder = Path(config.acme_folder)
        self._file = Path(config.tls_certificate)
        self._settings = settings
        self._failures = 0
        self._unknown = False  # the authority does not know our account any more
        # Not when everybody else comes: up to a thirtieth of its life (3 days of 90) sooner.
        self._sooner = _RANDOM.random() / 30

    def run(self) -> None:
        """Get certificates for ever."""
        self._prepare()
        while True:
            held = Held.read(self._file)
            due = self._due(held)
            if held and due > time.time():
                self._say(f"the certificate is good until {held.until()}")
                time.sleep(min(max(due - time.time(), 0), LONGEST_NAP_SECONDS))
            elif problem := self._obtain():
                self._fail(held, problem)
            else:
                self._failures = 0

    def _due(self, held: Held | None) -> float:
        """Return when to get the next one: with a third of its life left, or at once."""
        if held is None or held.names != set(self._names):
            return -math.inf
        return held.end - (held.end - held.begin) * (1 / 3 + self._sooner)

    def _obtain(self) -> str:
        """Run the client; return what went wrong, "" when a certificate came."""
        self._say(f"asking {self._settings.directory} for a certificate for {self._names}")
        for _ in range(TRIES):
            self._clear()
            try:
                done = self._client()
            except subprocess.TimeoutExpired:
                return f"the client did not end in {CLIENT_SECONDS} s"
            if not done.returncode or "badNonce" not in done.stdout:
                break
        self._unknown = "accountDoesNotExist" in done.stdout
        if done.returncode:
            return done.stdout
        if self._due(Held.read(self._file)) <= time.time():
            return "the new certificate is due already: check this machine's clock"
        return ""

    def _client(self) -> subprocess.CompletedProcess[str]:
        # The client ends when we are killed; `--force`: we know when it is time.
        command = ["setpriv", "--pdeathsig", "TERM", "dehydrated", "--cron", "--force"]
        command += ["--accept-terms", "--no-lock", "--config", str(self._folder / "config")]
        more = {"TMPDIR": str(self._folder / "tmp")}
        if self._settings.ca_file:
            more["CURL_CA_BUNDLE"] = self._settings.ca_file
        return subprocess.run(
            command,
            env=os.environ | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=CLIENT_SECONDS,
        )

    def _fail(self, held: Held | None, problem: str) -> None:
        """Say what went wrong and what to do, and wait."""
        advice = [text for sign, text in _ADVICE.items() if re.search(sign, problem)]
        for line in filter(str.strip, problem.splitlines()):
            self._say(f"  {line}")
        has = f"what there is holds until {held.until()}" if held else "there is none"
        pause = min(self._settings.retry_seconds * 2**self._failures, LONGEST_PAUSE_SECONDS)
        pause = int(pause * (1 + _RANDOM.random() / 4))
        self._failures += 1
        self._say(
            f"WARNING: no new certificate ({has}). Next try in {pause} s. {'; '.join(advice)}"
        )
        time.sleep(pause)

    def _prepare(self) -> None:
        """Make the folder and the client's settings. The gateway's worker may be another user."""
        os.umask(0o077)
        for folder, mode in ((self._folder, 0o711), (self._folder / CHALLENGES, 0o755)):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)
        self._lock = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another one is at work in {self._folder}") from None
        text = _CLIENT.format(
            directory=shlex.quote(self._settings.directory),
            email=shlex.quote(self._settings.email),
            folder=shlex.quote(str(self._folder.absolute())),
            challenges=CHALLENGES,
            certificates=CERTIFICATES,
        )
        (self._folder / "config").write_text(text)
        (self._folder / "names").write_text(f"{' '.join(self._names)} > {CERTIFICATE}\n")

    def _clear(self) -> None:
        """Remove what a killed client left: files, and an account that it did not finish."""
        for account in self._folder.glob("accounts/*"):
            registered = account / "registration_info.json"
            if self._unknown or not registered.exists() or not registered.stat().st_size:
                shutil.rmtree(account)
        self._unknown = False
        for old in ("tmp", "archive"):
            shutil.rmtree(self._folder / old, ignore_errors=True)
        for proof in (self._folder / CHALLENGES).iterdir():
            proof.unlink()
        (self._folder / "tmp").mkdir()

    def _say(self, text: str) -> None:
        print(f"acme: {text}", flush=True)


def main() -> None:
    """Run until we are told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # process 1 would not hear it otherwise
    try:
        config = Config.from_environment()
        settings = Settings.from_environment()
        if config.tls_names:
            Acme(config, settings).run()
        sys.exit("acme: set GATEWAY_TLS_NAMES to the host names of the certificate")
    except ConfigError as error:
        sys.exit(f"acme: {error}")


if __name__ == "__main__":
    main()
