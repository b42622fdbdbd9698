"""The FastAPI application: one route a call, no state, no external request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from ..calls import all_calls
from ..calls.call import Route
from . import models
from .calls import answer, warm_up
from .form import PAGE, page
from .limits import Limits
from .pool import Pool, pool_of
from .worker import LIMIT_S, Fault, Overload, fault_sentence

MOST_PROBLEMS = 8
ShortText = Annotated[str, Query(max_length=32)]
DESCRIPTION = (
    "How few bits, how few synchronisations, how far from the limit. Numbers may be JSON numbers or decimal texts, "
    "which are read exactly; a float counts as the decimal it prints. Infinities are the texts Infinity and -Infinity. "
    f"No request computes longer than {LIMIT_S:g} s of processor time."
)
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": models.Refusal, "description": text}
    for status, text in (
        (400, "the body is no JSON"),
        (408, "the request did not arrive in time"),
        (413, "the request is too large"),
        (421, "the host is not one that the server answers to"),
        (422, "an assumption, a rule or the limit of computing time fails, in words"),
        (500, "computing failed by a fault of the server, in words"),
        (503, "too many requests wait"),
    )
}


class Json(Response):
    """JSON without nan and infinities, which would not be JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def create_app(*, pool: Pool | None = None, hosts: Iterable[str] = ()) -> FastAPI:
    """Return the application; its worker processes live as long as it does.

    Parameters
    ----------
    pool : Pool or None, optional
        Of the processes.
    hosts : iterable of str, optional
        Names that it answers to, besides addresses and localhost.
    """
    workers = pool or pool_of()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        workers.start()
        warm_up()
        try:
            yield
        finally:
            workers.close()

    app = FastAPI(
        title="ratedist", version="1", description=DESCRIPTION, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    routes = {name: call.route for name, call in all_calls().items() if call.route is not None}
    longest = {f"/v1/{name}": route.most_bytes for name, route in routes.items()}
    app.add_middleware(Limits, hosts=tuple(hosts), most_bytes=longest)
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ValueError, _refused)
    app.add_exception_handler(Overload, _given_up)
    app.add_exception_handler(Fault, _faulty)
    app.add_exception_handler(Exception, _faulty)

    for name, route in routes.items():
        if route.model:
            _add_call(app, name, route, workers)
    for name, route in routes.items():
        if not route.model:
            _add_reading(app, name, route, workers)
    _add_rest(app)
    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


def _add_call(app: FastAPI, name: str, route: Route, workers: Pool) -> None:
    async def endpoint(request: Any, http: Request) -> Response:
        given = request.model_dump(exclude_unset=True)
        if route.is_closed_form(given):
            return Json(answer(name, given))
        return Json(await workers.call(name, given, http.is_disconnected))

    endpoint.__annotations__["request"] = models.request_model(route)
    model = models.Answer if route.stated else models.Record
    app.post(f"/v1/{name}", response_model=model, responses=REFUSALS, summary=route.title, operation_id=name)(endpoint)


def _add_reading(app: FastAPI, name: str, route: Route, workers: Pool) -> None:
    """Add a call that is read with GET; its arguments are short texts of the query."""

    async def endpoint(http: Request, **given: str) -> Response:
        return Json(await workers.call(name, given, http.is_disconnected))

    query = [
        Parameter(argument.name, Parameter.KEYWORD_ONLY, default=argument.default, annotation=ShortText)
        for argument in route.arguments
    ]
    request = Parameter("http", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
    endpoint.__signature__ = Signature([request, *query])  # type: ignore[attr-defined]
    endpoint.__name__, endpoint.__doc__ = name, route.about
    app.get(f"/v1/{name}", response_model=models.Record, responses=REFUSALS, operation_id=name)(endpoint)


def _add_rest(app: FastAPI) -> None:
    @app.get("/healthz", response_model=models.Record, operation_id="healthz")
    async def healthz() -> Response:
        """Whether the server answers."""
        return Json({"status": "ok"})

    text = page()

    @app.get("/", include_in_schema=False)
    async def root() -> HTMLResponse:
        return HTMLResponse(text)


def _problem(status: int, sentence: str, kind: str, loc: tuple[Any, ...] = ("body",)) -> Response:
    return Json({"detail": [{"loc": list(loc), "msg": sentence, "type": kind}]}, status_code=status)


async def _refused(_: Request, error: Exception) -> Response:
    return _problem(422, str(error), "refused")


async def _faulty(_: Request, error: Exception) -> Response:
    return _problem(500, str(error) if isinstance(error, Fault) else fault_sentence(error), "fault")


async def _given_up(_: Request, error: Exception) -> Response:
    assert isinstance(error, Overload)
    response = _problem(error.status, str(error), "limit")
    if error.status == 503:
        response.headers["retry-after"] = "5"
    return response


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    remedy = "send a JSON object" if error.status_code == 400 else "see /openapi.json for what there is"
    response = _problem(error.status_code, f"{error.detail}: {remedy}", "http", ("request",))
    response.headers.update(error.headers or {})
    return response


async def _invalid(_: Request, error: Exception) -> Response:
    """Return every failing field in one sentence: name, rule, value, remedy."""
    assert isinstance(error, RequestValidationError)
    fields: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for problem in error.errors():
        depth = 3 if problem["loc"][1:2] == ("cluster",) else 2
        fields.setdefault(tuple(problem["loc"][:depth]), []).append(problem)
    details = [
        {"loc": [str(part)[:64] for part in place], "msg": _sentence(place, errors), "type": errors[0]["type"]}
        for place, errors in list(fields.items())[:MOST_PROBLEMS]
    ]
    return Json({"detail": details}, status_code=422)


def _sentence(place: tuple[Any, ...], errors: list[dict[str, Any]]) -> str:
    """Return one field's failures; a field of several kinds fails once for each."""
    kinds, first = {error["type"] for error in errors}, errors[0]
    if isinstance(first.get("input"), bytes):
        return "the body must be a JSON object; got bytes: send it with content-type: application/json"
    if "json_invalid" in kinds:
        return "the body must be JSON; got text that is none: send a JSON object"
    name = ".".join(str(part)[:64] for part in place[1:]) or "the body"
    if "missing" in kinds:
        return f"{name} must be given; got nothing: see /openapi.json for what is taken"
    chosen = next((error for error in errors if error["type"] in ("too_long", "too_short", "string_too_long")), first)
    rule = chosen["msg"][:1].lower() + chosen["msg"][1:]
    if len(errors) > 1 and chosen is first:
        rule = "it must be a number, a decimal text, or a list of numbers where several are taken"
    got = repr(chosen.get("input"))[:64]
    return f"{name} is not taken: {rule}; got {got}: see /openapi.json for what is"
