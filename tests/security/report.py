"""All that is tried, as everybody: how many requests, and what came back."""

import time
from collections import Counter
from collections.abc import Iterator

from tests.security import fuzz, routes, sweep, table
from tests.security.case import TARGETS
from tests.security.site import Guarded
from tests.security.visitors import THOROUGH


class Report:
    """What was tried, how many requests, and what came back."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.wrong = self.requests = 0

    def say(self, line: str = "") -> None:
        """Print a line, and keep it."""
        self.lines.append(line)
        print(line, flush=True)

    def run(self, site: Guarded, at_least: int, seed: int) -> None:
        """Try all of it."""
        visitors, everything = site.visitors, routes.everything(site.document)
        thorough = [visitor for visitor in visitors if visitor.name in THOROUGH]
        self.say(f"python -m tests.security --requests {at_least} --seed {seed}")
        self.say(f"{time.strftime('%Y-%m-%d')}; access required; {len(visitors)} visitors")
        self.say("\nEach route, as each\n")
        self._swept(sweep.sweep(site.ports, everything, visitors))
        self.say("\nEach address with the methods that it does not have\n")
        self._swept(sweep.sweep(site.ports, list(routes.undeclared(everything)), thorough))
        self.say("\nEach case of declared.tsv\n")
        for visitor in thorough:
            self._tried(visitor.name, table.lines(site, table.cases(), visitor))
        rest = at_least - self.requests
        if rest > 0:
            self.say("\nAt random, as somebody\n")
            done = fuzz.fuzz(site, rest + fuzz.AT_ONCE, seed)
            self._add(done.said.total(), len(done.wrong))
            for line in done.printed():
                self.say(line)
        self.say(f"\n{self.requests} requests, {self.wrong} with an answer that is not declared")

    def _add(self, requests: int, wrong: int) -> None:
        self.requests += requests
        self.wrong += wrong

    def _swept(self, findings: list[sweep.Asked]) -> None:
        said: dict[tuple[str, str], Counter[str]] = {}
        for finding in findings:
            counts = said.setdefault((finding.visitor.name, finding.target), Counter())
            counts[str(finding.answer.status)] += 1
        for (name, target), counts in said.items():
            self._row(name, target, counts)
        for finding in (finding for finding in findings if finding.wrong):
            route = f"{finding.route.method} {finding.route.path}"
            visitor = f"{finding.visitor.name} at the {finding.target}"
            self.say(f"WRONG: {route} as {visitor}: {finding.answer.status}: {finding.wrong}")
        self._add(len(findings), sum(bool(finding.wrong) for finding in findings))

    def _tried(self, name: str, findings: list[table.Line]) -> None:
        for target in TARGETS:
            said = (finding.said.split() for finding in findings if finding.target == target)
            self._row(name, target, Counter(status for answer in said for status in answer[:1]))
        for line in (finding for finding in findings if finding.wrong):
            self.say(
                f"WRONG: {line.name} as {name} at the {line.target}: {line.said}: {line.wrong}"
            )
        self._add(len(findings), sum(bool(line.wrong) for line in findings))

    def _row(self, name: str, target: str, counts: Counter[str]) -> None:
        self.say(f"{name:<34}{target:<12}{counts.total():>6}  {' '.join(_each(counts))}")


def _each(counts: Counter[str]) -> Iterator[str]:
    for said, count in sorted(counts.items()):
        yield f"{said}: {count}"
