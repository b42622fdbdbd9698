"""What a request may hold and what an answer looks like; the only place that knows pydantic."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, create_model

from ..calls import call as kinds
from ..calls.call import REQUIRED, Argument, Route

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
Measured = Annotated[dict[str, Any], Field(description="The file that gpu_validation.pilot has written, as it is.")]
Real = float | Literal["Infinity", "-Infinity", "NaN"]


def request_model(route: Route) -> type[BaseModel]:
    """Return the model of a call's requests, made from its arguments."""
    fields: dict[str, Any] = {argument.name: _field(argument) for argument in route.arguments}
    config = ConfigDict(extra="forbid", json_schema_extra={"examples": [dict(route.example)]})
    return create_model(route.model, __config__=config, __doc__=route.about, __module__=__name__, **fields)


def _field(argument: Argument) -> tuple[Any, Any]:
    """Return type and default, ``...`` where there is none."""
    taken = _type(argument.kind)
    if argument.default is REQUIRED:
        return taken, ...
    return (taken | None if argument.default is None else taken), argument.default


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
