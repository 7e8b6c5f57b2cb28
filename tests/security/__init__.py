"""What an attacker sends: every case is data, a request and the only answers that it may get."""

import sys

from scripts.processes import ROOT

# As pytest does, for `python -m tests.security`.
sys.path.extend(str(ROOT / "services" / name) for name in ("ingest", "monitoring"))
