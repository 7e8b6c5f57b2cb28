"""Print the table of docs/measurements.md: who waits how long in each fault.

    .venv/bin/python -m tests.gateway.waits

Real NGINX with the real configuration, 35 detections per second for 10 s in each fault, as NGINX's
own clock saw them. Takes two minutes.
"""

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.gateway.conftest import Gateway

RATE, SECONDS = 35, 10
SLOW_SECONDS = 0.05


def refuse(*numbers: int) -> Callable[[Gateway], None]:
    def apply(gateway: Gateway) -> None:
        for number in numbers:
            gateway.ingest[number].close()

    return apply


def fail(fault: str, *numbers: int) -> Callable[[Gateway], None]:
    def apply(gateway: Gateway) -> None:
        for number in numbers:
            gateway.ingest[number].fault = fault

    return apply


def answer(status: int, *numbers: int) -> Callable[[Gateway], None]:
    def apply(gateway: Gateway) -> None:
        for number in numbers:
            gateway.ingest[number].answer(status, b"{}")

    return apply


def delay(gateway: Gateway) -> None:
    gateway.ingest[0].delay_seconds = 1


def refuse_all(gateway: Gateway) -> None:
    refuse(0, 1)(gateway)
    gateway.monitoring.close()


def refuse_and_hang(gateway: Gateway) -> None:
    refuse(0, 1)(gateway)
    gateway.monitoring.fault = "hang"


FAULTS: dict[str, Callable[[Gateway], None]] = {
    "none": lambda _: None,
    "one refuses": refuse(0),
    "one resets": fail("reset", 0),
    "one answers 503": answer(503, 0),
    "one takes 1 s": delay,
    "one hangs": fail("hang", 0),
    "both refuse": refuse(0, 1),
    "both refuse, monitoring down": refuse_all,
    "both refuse, monitoring hangs": refuse_and_hang,
    "both reset": fail("reset", 0, 1),
    "both answer 503": answer(503, 0, 1),
    "both hang": fail("hang", 0, 1),
}


def measure(apply: Callable[[Gateway], None], run: Path) -> str:
    """Return one row: answers by status, how many waited, median and longest wait."""
    gateway = Gateway(run).start()
    try:
        gateway.answer_open()
        apply(gateway)
        answers = gateway.load(RATE, SECONDS)
        waits = [float(line["seconds"]) for line in gateway.logged()]
    finally:
        gateway.close()
    counts = [sum(answer.status == status for answer in answers) for status in (200, 503)]
    others = len(answers) - sum(counts)
    slow = sum(wait > SLOW_SECONDS for wait in waits)
    median, longest = statistics.median(waits) * 1000, max(waits) * 1000
    return f"{counts[0]} | {counts[1]} | {others} | {slow} | {median:.0f} ms | {longest:.0f} ms |"


def main() -> None:
    """Measure each fault with a gateway of its own."""
    print("| fault | 200 | 503 | other | over 50 ms | median | longest |")
    print("|---|---|---|---|---|---|---|")
    for name, apply in FAULTS.items():
        with tempfile.TemporaryDirectory() as run:
            print(f"| {name} | {measure(apply, Path(run))}", flush=True)


if __name__ == "__main__":
    main()
