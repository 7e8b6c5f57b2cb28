"""Until when the gateway's certificate is good, as the gateway tells; and the warning before."""

import re
import time
from collections.abc import Callable

from common import metrics
from monitoring.gateway import GatewayUnavailable

ADDRESS = "/_metrics"
LOOK_SECONDS = 300.0
WARN_SECONDS = 14 * 86_400  # of those that come by themselves, the next one comes sooner
_ENDS = re.compile(rf"^{metrics.CERTIFICATE.name} ([0-9.e+]+)$", re.MULTILINE)
_TODO = "See why no new one came (docs/runbook.md, “WaymarkCertificateExpires”)."


class Certificate:
    """Asks the gateway, by `text`, not more often than is useful."""

    def __init__(self, text: Callable[[str], str], clock: Callable[[], float] = time.time) -> None:
        self._text = text
        self._clock = clock
        self._ends: float | None = None
        self._looked_at = float("-inf")

    def warnings(self) -> list[dict[str, str]]:
        """Return what an operator has to see to: nothing where there is no certificate."""
        now = self._clock()
        if abs(now - self._looked_at) >= LOOK_SECONDS:
            try:
                told = _ENDS.search(self._text(ADDRESS))
            except GatewayUnavailable:
                return []  # which the verdict tells
            self._ends, self._looked_at = float(told[1]) if told else None, now
        if self._ends is None or self._ends - now > WARN_SECONDS:
            return []
        day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self._ends))
        is_over = self._ends <= now
        what = "The certificate has expired" if is_over else "The certificate expires soon"
        return [
            {"what": what, "todo": f"It {'was' if is_over else 'is'} good until {day}. {_TODO}"}
        ]
