"""The page's static files: read and compressed once, when the service starts."""

import gzip
import hashlib
import mimetypes
from pathlib import Path
from typing import NamedTuple

from flask import Flask, Response, abort, request

FOLDER = Path(__file__).parent / "static"


class Asset(NamedTuple):
    """One file as it is sent."""

    mimetype: str
    plain: bytes
    compressed: bytes
    etag: str


def read(file: Path) -> Asset:
    """Read and compress a file; text below 1000 bytes hardly gains, but does not lose either."""
    plain = file.read_bytes()
    mimetype = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    etag = hashlib.blake2b(plain, digest_size=8).hexdigest()
    return Asset(mimetype, plain, gzip.compress(plain, 9, mtime=0), etag)


def init_app(app: Flask) -> None:
    """Serve the files at the address that `url_for('static', ...)` makes."""
    assets = {file.name: read(file) for file in FOLDER.iterdir() if file.is_file()}

    def static(filename: str) -> Response:
        asset = assets.get(filename)
        if asset is None:
            abort(404)
        zipped = request.accept_encodings.quality("gzip") > 0
        response = Response(asset.compressed if zipped else asset.plain, mimetype=asset.mimetype)
        if zipped:
            response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        response.headers["Cache-Control"] = "no-cache"  # ask each time; 304 costs next to nothing
        response.set_etag(asset.etag, weak=True)  # the same for both forms
        response.make_conditional(request)
        return response

    app.add_url_rule("/monitoring/static/<filename>", "static", static)
