"""The FastAPI application: models of requests, the page's form, limits, and one route per call."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from functools import cache
from html import escape
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, create_model
from starlette.exceptions import HTTPException

from ...calls import all_calls
from ...calls import arguments as kinds
from ...calls.arguments import REQUIRED, Argument
from ...calls.call import MOST_BYTES, Call, Route
from ...cluster.links import LINE_RATES
from ...numbers import text_of
from ...pilots.pilot import recorded_pilot, recorded_pilots
from ...plans.problem import ASSUMED
from .worker import LIMIT_S, Fault, Overload, Pool, answer, fault_sentence, pool_of, warm_up

# -- models of requests --------------------------------------------------------------------------------

MOST_ELEMENTS = 512
MOST_COORDINATES = 4096
MOST_OPERATORS = 16

Text = Annotated[str, Field(max_length=64, description='A decimal text, read exactly: "0.3", "1e9".')]
Number = StrictInt | StrictFloat | Text
Numbers = Number | Annotated[list[Number], Field(min_length=1, max_length=MOST_ELEMENTS)]
Specification = Annotated[str, Field(max_length=100, examples=["tcdq:omega=1"], description="A catalogue name.")]
Setting = Annotated[
    list[Annotated[str, Field(max_length=64)]],
    Field(max_length=64, description="What holds, by name; then the theorem is used only if this implies its needs."),
]
Measured = Annotated[
    dict[str, Any] | Annotated[str, Field(max_length=64)],
    Field(description="The file that gpu_validation.pilot has written, as it is, or the name of a recorded pilot."),
]
Real = float | Literal["Infinity", "-Infinity", "NaN"]


def request_model(name: str, route: Route) -> type[BaseModel]:
    """Return the model of a call's requests, made from its arguments."""
    fields: dict[str, Any] = {argument.name: _field(argument) for argument in route.arguments}
    config = ConfigDict(extra="forbid", json_schema_extra={"examples": [dict(route.example)]})
    title = name.title().replace("_", "")
    return create_model(title, __config__=config, __doc__=route.about, __module__=__name__, **fields)


def _field(argument: Argument) -> tuple[Any, Any]:
    """Return the type, and the default with its description."""
    taken = _type(argument.kind)
    if argument.default is REQUIRED:
        return taken, Field(description=argument.help)
    return (taken | None if argument.default is None else taken), Field(argument.default, description=argument.help)


def _type(kind: kinds.Kind) -> Any:
    match kind:
        case kinds.Number():
            return Number
        case kinds.Numbers() | kinds.Sought():
            return Numbers
        case kinds.Text():
            return Annotated[str, Field(max_length=kind.longest)]
        case kinds.Whole():
            return Annotated[int, Field(ge=kind.least, le=kind.most)]
        case kinds.Names():
            return Setting
        case kinds.Specification():
            return Specification
        case kinds.Specifications():
            return Annotated[list[Specification], Field(min_length=1, max_length=MOST_OPERATORS)]
        case kinds.Coordinates():
            return Annotated[list[StrictFloat | StrictInt], Field(min_length=1, max_length=MOST_COORDINATES)]
        case kinds.Point():
            return Annotated[dict[Annotated[str, Field(max_length=32)], Number], Field(max_length=16)]
        case kinds.Coding():
            pair = _parts_model(
                "CodecOf", "Seconds of one rank's processor for a coordinate of one message.", kind.parts
            )
            by_name = Annotated[dict[Specification, pair], Field(max_length=MOST_OPERATORS)]  # type: ignore[valid-type]
            return Literal["measured", "free"] | pair | by_name | None
        case kinds.Measured():
            return Measured
        case kinds.Flag():
            return bool
        case kinds.Workers():
            return _parts_model("ClusterOf", "Equal workers and links.", kind.parts)
    raise TypeError(f"a request cannot hold {kind}")


@cache
def _parts_model(name: str, about: str, parts: tuple[Argument, ...]) -> type[BaseModel]:
    fields: dict[str, Any] = {part.name: _field(part) for part in parts}
    return create_model(name, __config__=ConfigDict(extra="forbid"), __doc__=about, __module__=__name__, **fields)


class Answer(BaseModel):
    """A number (or a list) with its certified interval, its theorem, and what to do."""

    model_config = ConfigDict(extra="allow")
    value: Real | list[Any]
    lo: Real | list[Any]
    hi: Real | list[Any]
    certified: bool
    quantity: str
    unit: str
    side: str
    theorem: str
    reference: str
    status: str
    about: str
    needs: list[str]
    assumptions: list[str]
    advice: str
    formula: str
    at: dict[str, Any]
    explanation: str


class Record(BaseModel):
    """Anything else, as a JSON object."""

    model_config = ConfigDict(extra="allow")


class Problem(BaseModel):
    """What is wrong, in one sentence."""

    loc: list[str | int]
    msg: str
    type: str


class Refusal(BaseModel):
    """The failing assumption or rule in words."""

    detail: list[Problem]


# -- form of the page ----------------------------------------------------------------------------------

PAGE = Path(__file__).parent.parent / "page"
SLOT = re.compile(r"\{\{ (\w+) \}\}")


def page() -> str:
    """Return the page: its template with a field in every slot.

    Raises
    ------
    ValueError
        If a slot names no field, or a field has no slot.
    """
    template = (PAGE / "index.html").read_text(encoding="utf-8")
    inputs = fields() | {"link_names": _link_names(), "recorded": _recorded()}
    if missing := set(SLOT.findall(template)) ^ set(inputs):
        raise ValueError(
            f"every slot of page/index.html needs a Control and every Control a slot; got only one of the two for "
            f"{', '.join(sorted(missing))}: add the other"
        )
    return SLOT.sub(lambda slot: inputs[slot[1]], template)


def _recorded() -> str:
    """Return an option for every recorded pilot."""
    options = ((name, recorded_pilot(name).recorded) for name in recorded_pilots())
    return "".join(f'<option value="{escape(name)}">{escape(words)}</option>' for name, words in options)


def _link_names() -> str:
    """Return the links that have a name, with what their specifications state."""
    items = (
        f"<li><code>{escape(name)}</code>: {rate.bit_per_s / 1e9:.4g} Gbit/s ({escape(rate.source)})</li>"
        for name, rate in LINE_RATES.items()
    )
    return f'<ul class="hint" id="link-names">{"".join(items)}</ul>'


def fields() -> dict[str, str]:
    """Return the field of every argument with a ``Control``, by the name that permalinks have for it."""
    shown: dict[str, tuple[Argument, str, str]] = {}
    for argument, group, example in _arguments():
        if argument.control is None:
            continue
        name = argument.control.field or argument.name.removesuffix("_per_coordinate")
        if name not in shown or not shown[name][2]:
            shown[name] = (argument, group, _start(argument, example))
    return {name: _labelled(name, *parts) for name, parts in shown.items()}


def _arguments() -> Iterator[tuple[Argument, str, Any]]:
    """Yield the arguments of all routes and their parts: (argument, what it is a part of, its value in the example)."""
    for call in all_calls().values():
        if call.route is None:
            continue
        for argument in call.route.arguments:
            value = call.route.example.get(argument.name)
            yield argument, "", value
            if isinstance(argument.kind, kinds.Workers | kinds.Coding):
                values = value if isinstance(value, Mapping) else {}
                yield from ((part, argument.name, values.get(part.name)) for part in argument.kind.parts)


def _start(argument: Argument, example: Any) -> str:
    assert argument.control is not None
    if argument.control.assumed:
        return ""
    if argument.control.choices:
        return text_of(argument.default or "")
    return argument.control.start or ("" if example is None else text_of(example))


def _labelled(name: str, argument: Argument, group: str, start: str) -> str:
    """Return the label and the input; the page adds a slider where there are decades."""
    control = argument.control
    assert control is not None
    symbol = f" <i>{escape(control.symbol)}</i>" if control.symbol else ""
    unit = f" <small>{escape(control.unit)}</small>" if control.unit else ""
    label = f'<label for="{name}">{escape(control.label)}{symbol}{unit}</label>'
    data = {"name": name, "part-of": group, "assumed": text_of(ASSUMED) if control.assumed else ""}
    if control.decades is not None:
        data |= dict(zip(("low", "high"), map(text_of, control.decades), strict=True))
        data["whole"] = "1" if control.whole else ""
    attributes = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items() if value)
    return f'<div class="control"{attributes}>{label}{_input(name, argument, start, data["assumed"])}</div>'


def _input(name: str, argument: Argument, start: str, assumed: str) -> str:
    control = argument.control
    assert control is not None
    if control.choices:
        options = "".join(
            f'<option value="{escape(value)}"{" selected" * (value == start)}>{escape(words)}</option>'
            for value, words in control.choices
        )
        return f'<select id="{name}">{options}</select>'
    if isinstance(argument.kind, kinds.Specifications):
        return f'<textarea id="{name}" rows="3" spellcheck="false">{escape(start)}</textarea>'
    placeholder = f' placeholder="{assumed}, assumed"' if assumed else ""
    mode = "text" if control.decades is None else "decimal"
    kind = f'type="text" inputmode="{mode}" autocomplete="off" spellcheck="false"'
    return f'<input id="{name}" {kind} value="{escape(start)}"{placeholder}>'


# -- limits and headers --------------------------------------------------------------------------------

ARRIVAL_S = 10.0
HEADERS = {
    b"content-security-policy": b"default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Limits:
    """Refuses other hosts (421), bodies beyond their limit (413) or that take longer than ARRIVAL_S to arrive (408).

    Parameters
    ----------
    hosts : iterable of str, optional
        Names that the server answers to, besides addresses.  A page of another site that makes its name point here (DNS
        rebinding) could otherwise read the answers.
    most_bytes : mapping of str to int, bytes, optional
        By path, where a request may be longer or has to be shorter.
    """

    def __init__(self, app: App, hosts: Iterable[str] = (), most_bytes: Mapping[str, int] | None = None) -> None:
        self.app = app
        self.most_bytes = dict(most_bytes or {})
        self.hosts = frozenset(name.lower() for name in ("localhost", *hosts))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS.items()]
            await send(message)

        named = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if not _is_known(named, self.hosts):
            sentence = f"the host must be an address or one of {', '.join(sorted(self.hosts))}; got {named[:64]!r}"
            await _refuse(send_with_headers, 421, f"{sentence}: start the server with --allow-host")
            return
        if scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send_with_headers)
            return
        most = self.most_bytes.get(scope["path"], MOST_BYTES)
        try:
            async with asyncio.timeout(ARRIVAL_S):
                body = await _body(receive, most)
        except TimeoutError:
            await _refuse(send_with_headers, 408, f"a request must arrive within {ARRIVAL_S:g} s: send it faster")
            return
        if body is None:
            await _refuse(send_with_headers, 413, f"a request must have at most {most} bytes: send less")
            return
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, replay, send_with_headers)


def _is_known(named: str, hosts: frozenset[str]) -> bool:
    """Return whether a Host header names this server: one of its names, or any address, which nobody can make point
    here.
    """
    try:
        name = urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in hosts
    return True


async def _body(receive: Receive, most: int) -> bytes | None:
    """Return the whole body, or None if it is too long; reading stops there."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"detail": [{"loc": ["body"], "msg": sentence, "type": "limit"}]}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# -- application ---------------------------------------------------------------------------------------

MOST_PROBLEMS = 8
ShortText = Annotated[str, Query(max_length=32)]
DESCRIPTION = (
    "How few bits, how few synchronisations, how far from the limit. Numbers may be JSON numbers or decimal texts, "
    "which are read exactly; a float counts as the decimal it prints. Infinities are the texts Infinity and -Infinity. "
    f"No request computes longer than {LIMIT_S:g} s of processor time."
)
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": text}
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
    routes = [(call, call.route) for call in all_calls().values() if call.route is not None]
    longest = {f"/v1/{call.name}": route.most_bytes for call, route in routes}
    app.add_middleware(Limits, hosts=tuple(hosts), most_bytes=longest)
    app.add_exception_handler(HTTPException, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ValueError, _refused)
    app.add_exception_handler(Overload, _given_up)
    app.add_exception_handler(Fault, _faulty)
    app.add_exception_handler(Exception, _faulty)

    for call, route in routes:
        (_add_call if route.example else _add_reading)(app, call, route, workers)
    _add_rest(app)
    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


def _add_call(app: FastAPI, call: Call, route: Route, workers: Pool) -> None:
    name = call.name

    async def endpoint(request: Any, http: Request) -> Response:
        given = request.model_dump(exclude_unset=True)
        if route.is_closed_form(given):
            return Json(answer(name, given))
        return Json(await workers.call(name, given, http.is_disconnected))

    endpoint.__annotations__["request"] = request_model(name, route)
    model = Answer if route.stated else Record
    title = call.summary[:1].upper() + call.summary[1:]
    app.post(f"/v1/{name}", response_model=model, responses=REFUSALS, summary=title, operation_id=name)(endpoint)


def _add_reading(app: FastAPI, call: Call, route: Route, workers: Pool) -> None:
    """Add a call that is read with GET; its arguments are short texts of the query."""
    name = call.name

    async def endpoint(http: Request, **given: str) -> Response:
        return Json(await workers.call(name, given, http.is_disconnected))

    query = [
        Parameter(argument.name, Parameter.KEYWORD_ONLY, default=argument.default, annotation=ShortText)
        for argument in route.arguments
    ]
    request = Parameter("http", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
    endpoint.__signature__ = Signature([request, *query])  # type: ignore[attr-defined]
    endpoint.__name__, endpoint.__doc__ = name, route.about
    app.get(f"/v1/{name}", response_model=Record, responses=REFUSALS, operation_id=name)(endpoint)


def _add_rest(app: FastAPI) -> None:
    @app.get("/healthz", response_model=Record, operation_id="healthz")
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
    argument = getattr(error, "argument", "")
    return _problem(422, str(error), "refused", ("body", argument) if argument else ("body",))


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
