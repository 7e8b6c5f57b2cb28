"""The page's static files: read and compressed once, when the service starts."""

import gzip
import hashlib
import mimetypes
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from flask import Flask, Response, abort, request

FOLDER = Path(__file__).parent / "static"
IMPORT = re.compile(rb'^(?:import|export|\}) .*?from "(\.[^"]+)";$', re.MULTILINE)


class StaticFile(NamedTuple):
    """One file as it is sent."""

    mimetype: str
    plain: bytes
    compressed: bytes
    etag: str


def init_app(app: Flask) -> None:
    """Serve the files at the address that `url_for('static', ...)` makes."""
    files = {name: _read(FOLDER / name) for name in names()}

    def static(filename: str) -> Response:
        file = files.get(filename)
        if file is None:
            abort(404)
        zipped = request.accept_encodings.quality("gzip") > 0
        response = Response(file.compressed if zipped else file.plain, mimetype=file.mimetype)
        if zipped:
            response.headers["Content-Encoding"] = "gzip"
        response.headers["Cache-Control"] = "no-cache"  # ask each time; a 304 costs next to nothing
        response.set_etag(file.etag, weak=True)  # the same for both forms
        response.make_conditional(request)
        return response

    app.extensions["static_files"] = files
    app.add_url_rule("/monitoring/static/<path:filename>", "static", static)
    app.add_template_global(lambda name: imported(name, files), "imported_modules")


def names() -> list[str]:
    """Return the path of each static file, relative to FOLDER."""
    return sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*") if file.is_file())


def imported(name: str, files: Mapping[str, StaticFile]) -> list[str]:
    """Return all modules that a module imports, directly or not, for the browser to preload.

    Without that, the browser would learn of each only from the module that imports it: one round
    trip after the other.
    """
    paths: list[str] = []
    unread = [name]
    while unread:
        module = unread.pop(0)
        for target in IMPORT.findall(files[module].plain):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(module), target.decode()))
            if path not in paths:
                paths.append(path)
                unread.append(path)
    return paths


def _read(file: Path) -> StaticFile:
    """Read and compress a file. The smallest gain nothing by that, but lose nothing either."""
    plain = file.read_bytes()
    mimetype = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    etag = hashlib.blake2b(plain, digest_size=8).hexdigest()
    return StaticFile(mimetype, plain, gzip.compress(plain, 9, mtime=0), etag)
