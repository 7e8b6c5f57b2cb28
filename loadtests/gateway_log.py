"""./scripts/load log: what the gateway's log of requests says of them, whatever a tool says."""

import argparse
import gzip
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from loadtests.figures import HTTP, Row, summary
from loadtests.refusals import Refused
from scripts.native.layout import DEFAULT_DATA

NAME = "requests.log"


class Line(msgspec.Struct):
    """A line of the log, as gateway/nginx/log.conf writes it."""

    time: datetime  # whole seconds
    path: str
    status: str
    bytes: str
    seconds: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.set_defaults(command=tell)
    files = "a folder of logs, or - for lines (data/log)"
    parser.add_argument("log", nargs="?", default=str(DEFAULT_DATA / "log"), help=files)
    parser.add_argument("--minutes", type=float, help="only of the last so many")


def tell(options: argparse.Namespace) -> int:
    """Print a line of figures for each address."""
    since = time.time() - 60 * options.minutes if options.minutes else 0.0
    lines = sys.stdin if options.log == "-" else _lines(Path(options.log), since)
    by_path = defaultdict[str, list[Row]](list)
    for row in read(lines, since):
        by_path[row.name].append(row)
    if not by_path:
        raise Refused(f"{options.log} has no line of a request")
    for path, of_path in sorted(by_path.items()):
        print(f"{path}: {len(of_path)} requests")
        print(summary(of_path).line(""))
    return 0


def rows(folder: Path, since: float) -> list[Row]:
    """Return the requests that a folder's log has, and that ended since a time (unix seconds)."""
    return list(read(_lines(folder, since), since))


def read(lines: Iterable[str], since: float) -> Iterator[Row]:
    """Yield a row for each line; a full disk may have cut some."""
    for text in lines:
        try:
            line = msgspec.json.decode(text, type=Line)
        except msgspec.DecodeError:
            continue
        if (ended := line.time.timestamp()) < int(since):
            continue
        seconds, status = float(line.seconds), int(line.status)
        began = ended - seconds
        error = "" if status < 400 else HTTP
        size = int(line.bytes)
        yield Row("", "", line.path, began, began, 1000 * seconds, status, size, error)


def _lines(folder: Path, since: float) -> Iterator[str]:
    for file in folder.glob(f"{NAME}*"):
        if file.stat().st_mtime < since:
            continue
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
            yield from lines
