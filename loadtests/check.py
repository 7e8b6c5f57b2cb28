"""./scripts/load check: do the figures agree with those of a second tool?"""

import argparse
import contextlib
import http.client
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import NamedTuple
from urllib.parse import urlsplit

from loadtests.architectures import New
from loadtests.engine import endpoints
from loadtests.engine.generator import generate
from loadtests.figures import HTTP, Row, Summary, ratios, read_csv, spread, summary
from loadtests.plans import PLANS, Step, requests
from loadtests.stack import Stack

TIMEOUT_SECONDS = 30.0
CASES = {("PERF-RT-1", "3780"): endpoints.insert_now, ("PERF-TP-2", "860"): endpoints.extract}
ROUNDS = 3  # of so many turns at most: others use this machine too, and more turns say more
TOLERANCE = 0.15
CLOCK_MS = 1.0  # below this a difference says more about the tools than about the server
FIGURES = ("rate", "p50", "mean")
SHOWN_ONLY = ("mean",)  # one hiccup of the machine moves it by more than that
SHIFT = 100  # staff ids of one turn


class Turn(NamedTuple):
    """What each tool measured, one right after the other."""

    first: Summary
    second: Summary


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=check)
    parser.add_argument("--ramp", type=float, default=5.0, help="seconds of each run (5)")
    parser.add_argument("--turns", type=int, default=5, help="runs of each tool (5)")


def check(options: argparse.Namespace) -> int:
    """Let both tools measure the same in turn; status 0 when they agree within 15 %."""
    print(f"{'':>16}{'':>12}{'Locust':>10}{'plain':>10}{'ratio':>8}{'turns':>7}")
    right = True
    for plan, name in CASES:
        step = next(candidate for candidate in PLANS[plan].steps if candidate.name == name)
        turns: list[Turn] = []
        with New() as stack:
            while len(turns) < ROUNDS * options.turns:
                for _ in range(options.turns):
                    turns.append(_turn(stack, plan, step, options.ramp, len(turns)))
                if all(agrees(turns, figure) for figure in FIGURES):
                    break
        for figure in FIGURES:
            first, second = _values(turns, figure)
            mine, other, ratio = spread(first), spread(second), ratios(first, second)
            medians = f"{mine.median:10.2f}{other.median:10.2f}{ratio.median:8.2f}"
            head, count = (f"{plan} {name}", str(len(turns))) if figure == "rate" else ("", "")
            verdict = "" if agrees(turns, figure) else "  differ"
            right = right and not verdict
            print(f"{head:>16}{figure:>12}{medians}{count:>7}{verdict}")
    print("both tools agree" if right else f"they differ by more than {TOLERANCE:.0%}")
    return int(not right)


def agrees(turns: Sequence[Turn], figure: str) -> bool:
    """Tell whether the tools agree: the median of neighbours, as the machine is never the same."""
    first, second = _values(turns, figure)
    apart = spread(abs(figure - other) for figure, other in zip(first, second, strict=True)).median
    near = figure != "rate" and apart <= CLOCK_MS
    return near or abs(ratios(first, second).median - 1) <= TOLERANCE or figure in SHOWN_ONLY


def _values(turns: Sequence[Turn], figure: str) -> list[list[float]]:
    """Return a figure of all turns, for each tool."""
    return [[float(getattr(turn, figure)) for turn in tool] for tool in zip(*turns, strict=True)]


def _turn(stack: Stack, plan: str, step: Step, ramp: float, number: int) -> Turn:
    """Measure with both; the one that begins changes. The second tool writes to what is there."""
    rows, begins = stack.folder / "rows.csv", number % 2 == 1
    path = CASES[plan, step.name](SHIFT * (number - begins))
    before = _second_tool(stack.url, path, requests(step, ramp), ramp) if begins else None
    options = {"ramp": ramp, "only": step.name, "pages": 0, "shift": SHIFT * number, "rows": rows}
    generate(stack.url, plan, options, quiet=True)
    first = [row for row in read_csv(rows, Row) if row.name == step.kind]
    second = before or _second_tool(stack.url, path, requests(step, ramp), ramp)
    return Turn(summary(first), summary(second))


def _second_tool(url: str, path: str, count: int, ramp_seconds: float) -> list[Row]:
    """Send GETs evenly over the ramp, each from a thread and a connection of its own.

    This tool has nothing in common with the first but the statistics.
    """
    at, began = urlsplit(url).netloc, time.monotonic() + 0.1

    def get(due: float) -> Row:
        sent, status, size = time.monotonic(), 0, 0
        connection = http.client.HTTPConnection(at, timeout=TIMEOUT_SECONDS)
        with contextlib.closing(connection), contextlib.suppress(OSError, HTTPException):
            connection.request("GET", path, headers={"Connection": "close"})
            response = connection.getresponse()
            status, size = response.status, len(response.read())
        ms = (time.monotonic() - sent) * 1000
        return Row("", "", "", due, sent - began, ms, status, size, "" if status == 200 else HTTP)

    sending = []
    with ThreadPoolExecutor(count) as threads:
        for due in (number * ramp_seconds / count for number in range(count)):
            time.sleep(max(0.0, began + due - time.monotonic()))
            sending.append(threads.submit(get, due))
    return [response.result() for response in sending]
