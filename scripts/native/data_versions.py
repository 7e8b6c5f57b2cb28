"""Which MongoDB made the data: a server opens those of its own release and of the one before."""

from mongo.binaries import version
from scripts.native.layout import Layout, StackError
from scripts.native.parts import is_sharded, parts

MARK = "made-by-mongodb"  # beside the data of a member; mongod leaves alone what it does not know


def check(layout: Layout) -> str:
    """Return what MongoDB is to be started. Raises StackError where it cannot open the data.

    It never changes the format: data of the release before can go back to that.
    """
    number, text = version(sharded=is_sharded(layout))
    for part in parts(layout):
        folder = layout.data / part.name
        mark = folder / MARK
        if not number or not part.database or not folder.is_dir():
            continue
        if {file.name for file in folder.iterdir()} <= {MARK}:
            mark.write_text(number)
        elif mark.exists() and not _opens(number, made := mark.read_text().strip()):
            raise StackError(
                f"MongoDB {made} made {folder}, and a server opens data of its own release and of "
                f"the one before: not {text}; set MONGODB_BIN to the folder of another"
            )
    return text


def _opens(server: str, made: str) -> bool:
    return int(server.partition(".")[0]) - int(made.partition(".")[0]) in (0, 1)
