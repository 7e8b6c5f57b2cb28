"""The certificate that nginx gets: the newest one that was offered and is in order."""

import subprocess
import sys
from pathlib import Path

from gateway.render import TLS_FILE, Config

# A program of its own: OpenSSL would stay in the memory that this one shares with nginx. A key with
# a password is refused; nobody is there to type it.
_IN_ORDER = "in order until "
_CHECK = """
import ssl, sys
try:
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(sys.argv[1], password="")
    ends = ssl._ssl._test_decode_cert(sys.argv[1])["notAfter"]
    print("in order until", ssl.cert_time_to_seconds(ends))
except OSError as error:
    print(error)
"""


class Certificate:
    """Takes what the files of the settings hold; what is wrong there never replaces what works."""

    def __init__(self, config: Config) -> None:
        self._files = list(filter(None, (config.tls_certificate, config.tls_key)))
        self._may_come_later = bool(config.tls_names)
        self._run = Path(config.run)
        self._seen = self._refused = self._taken = ""
        self._ends: dict[str, float] = {}
        if not self._files:
            (self._run / TLS_FILE).unlink(missing_ok=True)  # a key that nobody needs any more

    @property
    def expires_at(self) -> float | None:
        """Return until when the one that is used is valid, in unix seconds."""
        return self._ends.get(self._taken)

    def look(self) -> str:
        """Return the chain and the key to use now; "" while there are none."""
        if not self._files:
            return ""
        if not self._seen:
            self._take_kept()
        problem = ""
        try:
            offered = "\n".join(Path(file).read_text() for file in self._files)
        except (OSError, UnicodeDecodeError) as error:
            offered = problem = str(error)
        settled, self._seen = offered == self._seen, offered
        # Until it stays the same for one look, somebody may be writing it.
        if offered not in (self._taken, self._refused) and (settled or not self._taken):
            problem = problem or self._problem(offered)
            if problem:
                self._refuse(offered, problem)
            else:
                self._taken = offered
        return self._taken

    def _take_kept(self) -> None:
        """Start with what an earlier run took: a renewal may be writing right now."""
        kept = self._run / TLS_FILE
        text = kept.read_text() if kept.exists() else ""
        if text and not self._problem(text):
            self._taken = text

    def _problem(self, text: str) -> str:
        """Return why nginx could not use it; "" when it can."""
        looked_at = self._run / f"{TLS_FILE}.offered"
        write_private(looked_at, text)
        command = [sys.executable, "-I", "-S", "-c", _CHECK, str(looked_at)]
        # What it says, not its status: process 1 may have taken that already.
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        looked_at.unlink()
        if not said.startswith(_IN_ORDER):
            return said or "it could not be looked at"
        self._ends = {text: float(said.removeprefix(_IN_ORDER))}
        return ""

    def _refuse(self, offered: str, problem: str) -> None:
        self._refused = offered
        said = f"{' and '.join(self._files)}: {problem}"
        if not self._taken and not self._may_come_later:
            sys.exit(f"gateway: no certificate: {said}")
        now = "the one of before stays" if self._taken else "the log of acme says why"
        print(f"gateway: WARNING: no new certificate ({now}): {said}", file=sys.stderr)


def write_private(file: Path, text: str) -> None:
    """Write a file that is for its owner only, whole or not at all."""
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(file)
