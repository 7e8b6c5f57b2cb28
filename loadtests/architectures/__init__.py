"""What gets the load: this architecture, or a form of the old one."""

import argparse
from collections.abc import Callable
from functools import partial

from loadtests.stacks import New, Old, Stack

UNOPTIMISED, DURABLE = "old-unoptimised", "old-durable"
SIDES: dict[str, Callable[..., Stack]] = {
    "old": Old,
    "new": New,
    UNOPTIMISED: partial(Old, unoptimised=True),  # the original's first query
    DURABLE: partial(Old, durable=True),  # answers when a detection is on the disk, as the new side
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that choose a side; without them it is this architecture."""
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
    """Return the name of the side that the options choose."""
    if options.unoptimised:
        return UNOPTIMISED
    if options.durable:
        return DURABLE
    return "old" if options.old else "new"
