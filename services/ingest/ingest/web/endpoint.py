"""An endpoint that is defined once, and served by the event loop and by Flask alike."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

from flask import Flask, abort
from flask import Response as FlaskResponse
from flask import request as flask_request

from common.routes import Route
from ingest.errors import BodyTooLarge, ParameterError
from ingest.rules.roles import Role, needs, role_at
from ingest.web import error_responses
from ingest.web.request import Request
from ingest.web.responses import Response

Parsed = TypeVar("Parsed")
Result = TypeVar("Result")


class Endpoint(NamedTuple, Generic[Parsed, Result]):
    """One address in three steps.

    `parse` raises what is wrong with the request, `work` StoreUnavailable. `reply` gets the
    request for its headers. `is_prompt`: `work` only waits for a future, which it gives; nobody
    needs a task for that.
    """

    route: Route
    parse: Callable[[Request], Parsed]
    work: Callable[[Parsed], Awaitable[Result]]
    reply: Callable[[Request, Result], Response]
    is_prompt: bool = False

    @property
    def path(self) -> str:
        """Return its address."""
        return self.route.path

    @property
    def role(self) -> Role:
        """Return what it needs, by any method."""
        return role_at(next(iter(self.route.roles)), self.route.path)

    async def respond(self, request: Request) -> Response:
        """Answer a request of any of its methods, whatever happens."""
        try:
            result = await self.begin(request)
        except Exception as error:
            return self.response_to(request, error)
        return self.replied(request, result)

    def begin(self, request: Request) -> Awaitable[Result]:
        """Begin its work. Raises what is wrong with the request."""
        if request.length > self.route.body_bytes:
            raise BodyTooLarge
        return self.work(self.parse(request))

    def replied(self, request: Request, result: Result) -> Response:
        """Return the response to a request whose work is done."""
        try:
            return self.reply(request, result)
        except Exception as error:
            return self.response_to(request, error)

    def response_to(self, request: Request, error: Exception) -> Response:
        """Return the response to what went wrong with a request."""
        request_id, stores = request.header(b"x-request-id"), self.role is Role.INGEST
        if isinstance(error, ParameterError):
            return error_responses.response_to(request.explained(error), request_id)
        return error_responses.response_to(error, request_id, stores=stores)

    def mount(self, app: Flask) -> None:
        """Let a Flask application answer it too."""

        @needs(self.role)
        def view() -> FlaskResponse:
            if flask_request.method == "HEAD" and not self.route.head:
                abort(405)
            return _complete(self.respond(_of_flask())).for_flask()

        app.add_url_rule(self.path, self.path[1:], view, methods=list(self.route.roles))


def _complete(response: Coroutine[Any, Any, Response]) -> Response:
    """Run a coroutine to its end, also in a thread in which some server's own loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(response)
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, response).result()


def _of_flask() -> Request:
    """Return Flask's current request."""
    headers = {n.lower().encode(): v.encode("latin-1") for n, v in flask_request.headers.items()}
    body = flask_request.get_data()  # refuses one over the limit
    return Request(
        flask_request.method,
        flask_request.path,
        flask_request.query_string,
        headers,
        body,
        len(body),
    )
