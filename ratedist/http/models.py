"""What a request may hold and what an answer looks like; the only place that knows pydantic."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt

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
Real = float | Literal["Infinity", "-Infinity", "NaN"]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")

    def given(self) -> dict[str, Any]:
        """The arguments that the request named."""
        return self.model_dump(exclude_unset=True)


class Bits(_Request):
    """Exactly one of omega and alpha."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"d": 1e9, "omega": 1.0}]})
    d: Numbers
    omega: Numbers | None = None
    alpha: Numbers | None = None


class Solve(_Request):
    """All but one of d, bits and omega (or alpha); what is null or left out is sought."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"d": 1000000, "bits": 2e6, "omega": None}]}
    )
    d: Numbers | None = None
    bits: Numbers | None = None
    omega: Numbers | None = None
    alpha: Numbers | None = None
    theorem: Annotated[str, Field(max_length=64)] | None = None
    setting: Setting | None = None


class ClusterOf(_Request):
    """Equal workers and links."""

    workers: Number
    bandwidth_bit_per_s: Number = 1e10
    latency_s: Number = 50e-6
    step_s: Number = 0.1
    compute: Annotated[str, Field(max_length=32)] = "exponential"
    topology: Annotated[str, Field(max_length=32)] = "ring"


CLUSTER_EXAMPLE: dict[str, Any] = {"workers": 16, "bandwidth_bit_per_s": 1e10, "latency_s": 50e-6, "step_s": 0.08}
PROBLEM_EXAMPLE: dict[str, Any] = {
    "L": 1,
    "sigma2": 1,
    "eta": 0.01,
    "gap": 1,
    "time_s": 600,
    "cluster": CLUSTER_EXAMPLE,
}


class Runtime(_Request):
    """Local steps between averagings, and the length of a message."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"cluster": CLUSTER_EXAMPLE, "tau": 8, "bits": 8.192e8}]}
    )
    cluster: ClusterOf
    tau: Numbers
    bits: Numbers = 0
    exchange: Annotated[str, Field(max_length=16)] = "sum"


class ErrorBound(_Request):
    """A problem, a schedule, a cluster and a budget; L, sigma2, gap may be texts "value:low:high" or left out (1)."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [PROBLEM_EXAMPLE | {"tau": 8}]})
    cluster: ClusterOf
    L: Numbers | None = None
    sigma2: Numbers | None = None
    eta: Numbers
    gap: Numbers | None = None
    tau: Numbers
    time_s: Numbers
    bits: Numbers = 0
    omega: Numbers = 0


class Tau(_Request):
    """A problem, a cluster and a budget; L, sigma2 and gap may be texts "value:low:high" or left out (assumed 1)."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [PROBLEM_EXAMPLE | {"bits": 8.192e8}]})
    cluster: ClusterOf
    L: Number | None = None
    sigma2: Number | None = None
    eta: Number
    gap: Number | None = None
    time_s: Number
    bits: Number = 0
    third_derivative: Number | None = None


class CodecOf(_Request):
    """Seconds of one rank's processor for a coordinate of one message."""

    encode_s_per_coordinate: Number
    decode_s_per_coordinate: Number


class Plan(_Request):
    """A model, a cluster and compressors; with L, sigma2 and gap averaging of local updates is planned too.

    codec: seconds of coding; if left out, each operator is timed on the server, once a worker process.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "d": 25600000,
                    "cluster": CLUSTER_EXAMPLE,
                    "operators": ["tcdq:omega=1", "qsgd:4", "topk:0.01"],
                    "target": 0.1,
                    "codec": {"encode_s_per_coordinate": 8.5e-9, "decode_s_per_coordinate": 4.3e-9},
                }
            ]
        },
    )
    d: Number
    cluster: ClusterOf
    operators: Annotated[list[Specification], Field(min_length=1, max_length=MOST_OPERATORS)]
    target: Number | None = None
    time_s: Number | None = None
    L: Number | None = None
    sigma2: Number | None = None
    gap: Number | None = None
    G: Number | None = None
    eta: Number | None = None
    condition: Number | None = None
    codec: (
        Literal["measured", "free"]
        | CodecOf
        | Annotated[dict[Specification, CodecOf], Field(max_length=MOST_OPERATORS)]
        | None
    ) = None
    setting: Setting | None = None


class Certify(_Request):
    """A theorem of the catalogue and the values of its symbols."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"theorem": "worst_case_bits", "at": {"d": 10**12, "alpha": "0.3"}}]},
    )
    theorem: Annotated[str, Field(max_length=64)]
    at: Annotated[dict[Annotated[str, Field(max_length=32)], Number], Field(max_length=16)]
    setting: Setting | None = None


class Gap(_Request):
    """A compressor and a short vector."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"op": "topk:0.5", "x": [3.0, -4.0]}]})
    op: Specification
    x: Annotated[list[StrictFloat | StrictInt], Field(min_length=1, max_length=MOST_COORDINATES)]
    draws: Annotated[int, Field(ge=1, le=10)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class Check(_Request):
    """A compressor of the catalogue, judged within the quick budget."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"op": "scaled_sign", "seed": 1}]})
    op: Specification
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None


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
