"""The FastAPI application: one route a call, no state, no external request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from . import models
from .calls import answer, is_closed_form, warm_up
from .limits import Limits
from .pool import Pool, pool_of
from .worker import LIMIT_S, Fault, Overload, fault_sentence

MOST_PROBLEMS = 8
PAGE = Path(__file__).parent.parent / "page"
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
POSTS: dict[str, tuple[type[models._Request], type[Any], str]] = {
    "bits": (models.Bits, models.Answer, "Bits that the longest message must have"),
    "solve": (models.Solve, models.Answer, "The one of d, bits and distortion that is left out"),
    "runtime": (models.Runtime, models.Answer, "Seconds of one local step"),
    "error": (models.ErrorBound, models.Answer, "What the error is at most after a time budget"),
    "tau": (models.Tau, models.Answer, "How many local steps between two averagings"),
    "plan": (models.Plan, models.Record, "Rank compressors for a model and a cluster"),
    "certify": (models.Certify, models.Answer, "The certified value of any theorem"),
    "gap": (models.Gap, models.Answer, "Bits of a compressor above the limit of its class"),
    "check": (models.Check, models.Record, "Judge a compressor of the catalogue by the conformance laws"),
}


class Json(Response):
    """JSON without nan and infinities, which would not be JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes of the body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def create_app(*, pool: Pool | None = None, hosts: Iterable[str] = ()) -> FastAPI:
    """The application; its worker processes live as long as it does.

    pool : of the processes.  hosts : names that it answers to, besides addresses and localhost.
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
    app.add_middleware(Limits, hosts=tuple(hosts))
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ValueError, _refused)
    app.add_exception_handler(Overload, _given_up)
    app.add_exception_handler(Fault, _faulty)
    app.add_exception_handler(Exception, _faulty)

    for name, (model, answer_model, summary) in POSTS.items():
        app.post(f"/v1/{name}", response_model=answer_model, responses=REFUSALS, summary=summary, operation_id=name)(
            _endpoint(name, model, workers)
        )

    _add_reads(app, workers)
    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


def _add_reads(app: FastAPI, workers: Pool) -> None:
    @app.get("/v1/operators", response_model=models.Record, responses=REFUSALS, operation_id="operators")
    async def operators(http: Request, d: Annotated[str, Query(max_length=32)] = "1e6") -> Response:
        """The catalogue of compressors at dimension d."""
        return Json(await workers.call("operators", {"d": d}, http.is_disconnected))

    @app.get("/v1/theorems", response_model=models.Record, responses=REFUSALS, operation_id="theorems")
    async def theorems(http: Request) -> Response:
        """Every theorem that certify takes, with its symbols."""
        return Json(await workers.call("theorems", {}, http.is_disconnected))

    @app.get("/healthz", response_model=models.Record, operation_id="healthz")
    async def healthz() -> Response:
        """Whether the server answers."""
        return Json({"status": "ok"})

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")


def _endpoint(name: str, model: type[models._Request], workers: Pool) -> Callable[..., Awaitable[Response]]:
    async def endpoint(request: Any, http: Request) -> Response:
        given = request.given()
        if is_closed_form(name, given):
            return Json(answer(name, given))
        return Json(await workers.call(name, given, http.is_disconnected))

    endpoint.__annotations__["request"] = model
    return endpoint


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
    """Every failing field in one sentence: name, rule, value, remedy."""
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
    """One field's failures; a field of several kinds fails once for each."""
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
