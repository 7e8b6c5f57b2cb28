"""What gets the load: this architecture, or a form of the old one."""

import argparse
from collections.abc import Callable
from functools import partial

from loadtests.architectures.new import New
from loadtests.architectures.old import Old
from loadtests.architectures.stack import Stack

OLD, NEW, UNOPTIMISED, DURABLE = "old", "new", "old-unoptimised", "old-durable"
ARCHITECTURES: dict[str, Callable[..., Stack]] = {
    OLD: Old,
    NEW: New,
    UNOPTIMISED: partial(Old, unoptimised=True),
    DURABLE: partial(Old, durable=True),
}
SERVICES = ("ingest-1", "ingest-2")
PARTS = (*SERVICES, "gateway", "mongod", "monitoring")  # whose usage a comparison reports


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that choose an architecture; without them it is this one."""
    parser.add_argument("--old", action="store_true", help="the old architecture instead")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--unoptimised", action="store_true", help="the old one with the original's first query"
    )
    which.add_argument(
        "--durable",
        action="store_true",
        help="the old one, answering only when a detection is on the disk (the source's did not)",
    )


def chosen(options: argparse.Namespace) -> str:
    """Return the name of the architecture that the options choose."""
    if options.unoptimised:
        return UNOPTIMISED
    if options.durable:
        return DURABLE
    return OLD if options.old else NEW
