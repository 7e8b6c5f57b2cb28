"""The directory of beacons as a CSV file: check it, and load it into MongoDB.

python -m mongo.directory check mongo/directory.csv
python -m mongo.directory load mongo/directory.csv [--uri mongodb://...]
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import PyMongoError

from common import beacon_file, csv_file, revisions
from common.beacon import Beacon
from common.beacon_file import BeaconFile
from common.directory import Changed, IdsRefused, put
from common.schema import BEACONS, DATABASE
from mongo.secrets import APP_USER


class DirectoryError(ValueError):
    """The file is not a directory of beacons; the text names the line and the column."""


class NoPassword(OSError):
    """The file with the password of the services' user cannot be read."""


def read(path: Path) -> BeaconFile:
    """Return what a file holds. Raises DirectoryError, OSError."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return _checked(file.read())
    except UnicodeDecodeError:
        raise DirectoryError("is not UTF-8") from None


def parse(text: str) -> list[Beacon]:
    """Return the beacons of a text. Raises DirectoryError at the first bad line."""
    return _checked(text).beacons


def _checked(text: str) -> BeaconFile:
    try:
        file = beacon_file.read(text)
    except csv_file.TooManyRows:
        most = beacon_file.MAX_BEACONS
        raise DirectoryError(f"more than {most} beacons; load them in parts") from None
    if file.errors:
        raise DirectoryError(str(file.errors[0]))
    return file


def load(
    beacons: list[Beacon], database: Database[dict[str, Any]], *, keeps_aliases: bool = False
) -> Changed:
    """Make the directory hold all of these beacons, or change nothing; others in it stay.

    Raises DirectoryError: another beacon has one of their ids.
    """
    try:
        return revisions.change(
            database,
            BEACONS,
            lambda session: put(database, beacons, session, keeps_aliases=keeps_aliases),
        )
    except IdsRefused as error:
        raise DirectoryError(str(error)) from None


def load_file(path: Path, uri: str, password_file: Path) -> Changed:
    """Check and load a file as the services' user. Raises DirectoryError, PyMongoError, OSError."""
    file = read(path)
    try:
        password = password_file.read_text().strip()
    except OSError as error:
        raise NoPassword(
            f"{password_file}: {error.strerror or error}. Name the file with --password-file: a"
            " stack that was started with --data DIR has DIR/secrets/app_password"
        ) from error
    with MongoClient[dict[str, Any]](
        uri,
        username=APP_USER,
        password=password,
        authSource=DATABASE,
        timeoutMS=20_000,
    ) as client:
        return load(file.beacons, client[DATABASE], keeps_aliases=file.keeps_aliases)


def main() -> None:
    """Run the command; a bad file or database ends it with one line and status 1."""
    parser = argparse.ArgumentParser(prog="python -m mongo.directory", description=__doc__)
    parser.add_argument("action", choices=["check", "load"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--uri", default="mongodb://127.0.0.1:27117/?replicaSet=embedded")
    parser.add_argument("--password-file", type=Path, default=Path("data/secrets/app_password"))
    options = parser.parse_args()
    try:
        if options.action == "check":
            print(f"{len(read(options.file).beacons)} beacons, all good")
        else:
            print(load_file(options.file, options.uri, options.password_file))
    except NoPassword as error:
        sys.exit(str(error))
    except (DirectoryError, OSError, PyMongoError) as error:
        sys.exit(f"{options.file}: {error}")


if __name__ == "__main__":
    main()
