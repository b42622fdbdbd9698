"""What a compressor really spends on a vector, against the limit of its class."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bounds.claims import Claim, NoClaim, Unbiased

from ..cluster.compressors import as_operator, claim_text, limit_rate
from ..numbers import Vector, refusal
from ..records import Answer, Answered, Table, number_text, plain
from .arguments import Specifications
from .call import Call, Command

if TYPE_CHECKING:
    from operators import Operator
    from operators.functions.own import Compressor

DRAWS = 3
MOST_DRAWS = 10_000
LOWEST_OCTAVE = -5  # below 1/32 bit per coordinate all are compared
MOST_NAMED = 3  # tensors of a file
COLUMNS = ("compressor", "bits", "NMSE", "excess", "claim")
NOTE = "bits: per coordinate, d = {d}{varying}; sorted by bits (up to 1, 2, 4, ...), then error; {excess}"
EXCESS = "excess: bits above the limit of the claimed class at that error (no claim: of contractive ones, rescaled)"
BELOW = "; below 0: the limit holds for the mean over Gaussian vectors, a single vector may need fewer bits"
STATUS = "limits are proved (safaryan2020); errors are measured on this vector alone, without interval"
ROUNDING = 1e-15  # of the error of the best multiple, which is a difference of numbers near 1


@dataclass(frozen=True)
class Measured:
    """One operator on one vector: means over the draws.

    Parameters
    ----------
    operator : str
        Its specification.
    claim : str
        In words.
    bits : float, bits
        A coordinate, everything counted.
    nmse : float
        ``|C(x) - x|^2/|x|^2``.
    limit : float or None
        Bits per coordinate that the class needs at that error; None without error, or without one but for a factor.
    gap : float or None
        Bits above the limit at that error; None without error.
    gap_range : tuple of float or None
        Least and greatest gap of a draw.
    limit_of : str, optional
        The class whose limit it is, and at which error, in words; without a limit, why the vector has none.
    limit_nmse : float, optional
        That error, the mean of ``|scale C(x) - x|^2/|x|^2``.
    scale : float, optional
        1, or where nothing is claimed the factor on the decoded vector that makes the error least: a receiver may
        multiply at no cost in bits, and an unbiased operator is then held against the limit of unbiased ones.
    kind : str, optional
        "unbiased", "contractive" or "none": the class that is claimed.
    varies : bool, optional
        Whether the number of bits depends on the vector or the draw, as after an entropy code.
    """

    operator: str
    claim: str
    bits: float
    nmse: float
    limit: float | None
    gap: float | None
    gap_range: tuple[float, float] | None
    limit_of: str = ""
    limit_nmse: float = 0.0
    scale: float = 1.0
    kind: str = "none"
    varies: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


def measure(operator: Compressor, x: Vector, *, draws: int = DRAWS, seed: int = 0) -> Measured:
    """Send a vector a few times, count every bit, and compare with the limit of the operator's class.

    Parameters
    ----------
    operator : str or Operator or callable
        Specification such as "qsgd:4", an ``Operator``, a function of your own with its bits (``own``), or
        "module:object" that names one of the last two.
    x
        Float array or tensor, not all zero.  An operator with a claim is held against the limit of its class, one
        without against the contractive limit at the error of the best multiple of its decoded vectors.
    draws : int, optional
        Number of messages of each operator, >= 1.
    seed : int, optional
        Seed of the operator's randomness.

    Raises
    ------
    ValueError
        For an unsuited vector or operator.
    """
    from operators import Key, specification
    from operators.inputs import outside_claims

    if not isinstance(draws, int) or not 1 <= draws <= MOST_DRAWS:
        raise refusal("draws", f"1 <= draws <= {MOST_DRAWS}, an integer", draws)
    sender, vector = as_operator(operator), finite_vector(x)
    outside = outside_claims(vector)
    claim = NoClaim(outside) if outside else sender.claim(vector.size)
    carried_bits = sender.carried_bits(vector.size)
    unbiased = isinstance(claim, Unbiased)
    wide = vector.astype(np.float64)
    energy = float(wide @ wide)
    bits, nmse, along, square = [], [], [], []
    for draw in range(draws):
        key = Key(seed, step=draw)
        message = sender.encode(vector, key=key)
        decoded = sender.decode(message, d=vector.size, key=key).numpy().astype(np.float64)
        error = decoded - wide
        bits.append((message.bits - carried_bits) / vector.size)
        nmse.append(float(error @ error) / energy)
        along.append(float(decoded @ wide) / energy)
        square.append(float(decoded @ decoded) / energy)
    rate, distortion = float(np.mean(bits)), float(np.mean(nmse))
    name = specification(sender)
    words = claim_text(claim)
    kind = "none" if isinstance(claim, NoClaim) else "unbiased" if unbiased else "contractive"
    varies = sender.bits(vector.size).exact is None
    if distortion == 0 or outside:
        return Measured(name, words, rate, distortion, None, None, None, limit_of=outside, kind=kind, varies=varies)
    scale = 1.0
    if isinstance(claim, NoClaim) and sum(along) > 0:
        scale = sum(along) / sum(square)
    judged = nmse if scale == 1 else [1 - 2 * scale * a + scale**2 * s for a, s in zip(along, square, strict=True)]
    limit_nmse = float(np.mean(judged))
    if limit_nmse <= ROUNDING:
        return Measured(name, words, rate, distortion, None, None, None, scale=scale, kind=kind, varies=varies)
    gaps = [b - limit_rate(e, unbiased=unbiased) for b, e in zip(bits, judged, strict=True) if e > ROUNDING]
    limit = limit_rate(limit_nmse, unbiased=unbiased)
    ends = min(gaps), max(gaps)
    where = _limit_words(claim, limit_nmse, scale)
    return Measured(name, words, rate, distortion, limit, rate - limit, ends, where, limit_nmse, scale, kind, varies)


def _limit_words(claim: Claim, at: float, scale: float) -> str:
    if isinstance(claim, NoClaim):
        return f"contractive, at nmse {at:.4g} of the decoded vector times {scale:.4g} (nothing is claimed)"
    return f"{'unbiased' if isinstance(claim, Unbiased) else 'contractive'}, at nmse {at:.4g}"


def finite_vector(x: Vector) -> np.ndarray:
    """Return a vector as float32.

    Parameters
    ----------
    x
        Float array or tensor, finite and not all zero.

    Raises
    ------
    ValueError
        Unless it is finite, not empty and not all zero.
    """
    from operators.inputs import canonical

    try:
        vector = canonical(x)
    except (TypeError, ValueError) as failure:
        raise ValueError(f"{failure}: give a finite float array or tensor, such as a flattened gradient") from None
    if not vector.any():
        raise ValueError(
            "x must have an entry that is not 0; got zeros only: no error relative to it exists, give data"
        )
    return vector


def octave(bits: float) -> int:
    """Return the power of two to which bits per coordinate are rounded up: those of one octave are compared.

    Parameters
    ----------
    bits : float, bits
        Per coordinate.
    """
    return math.ceil(math.log2(bits)) if bits > 2.0**LOWEST_OCTAVE else LOWEST_OCTAVE


def of_file(tensors: Sequence[str], left_out: Sequence[str]) -> dict[str, str]:
    """Return the tensors of a file as facts of an answer; none without a file.

    Parameters
    ----------
    tensors : sequence of str
        Names of those that were read.
    left_out : sequence of str
        Names of the others, with the reason.
    """
    return {"read": "" if tuple(tensors) == ("array",) else _listed(tensors), "not read": _listed(left_out)}


def _listed(names: Sequence[str]) -> str:
    first = ", ".join(" ".join(name.split()) for name in names[:MOST_NAMED])
    return first if len(names) <= MOST_NAMED else f"{first} and {len(names) - MOST_NAMED} more"


def evidence_of(points: Sequence[Measured]) -> dict[str, str | Sequence[str]]:
    """Return what each compressor claims and which limit it is held against.

    Parameters
    ----------
    points : sequence of Measured
        What was measured.
    """
    return {
        "claims": [f"{point.operator}: {point.claim}" for point in points],
        "limits": [f"{point.operator}: {point.limit_of}" for point in points if point.limit_of],
        "excess": "bits - limit; the limit is that of the class at the error in the list above",
    }


def excess_note(points: Iterable[Measured]) -> str:
    """Return what the excess in a table is, and why one may be negative where one is.

    Parameters
    ----------
    points : iterable of Measured
        The rows of the table.
    """
    return EXCESS + BELOW * any(point.gap is not None and point.gap < 0 for point in points)


def varying_note(points: Iterable[Measured]) -> str:
    """Return whose bits depend on the vector, for the note of a table; empty if none do.

    Parameters
    ----------
    points : iterable of Measured
        The rows of the table.
    """
    names = dict.fromkeys(point.operator.partition(":")[0] for point in points if point.varies)
    return (
        f" (of {', '.join(names)} they depend on the vector)"
        if 0 < len(names) <= MOST_NAMED
        else (" (after an entropy code they depend on the vector)" if names else "")
    )


def kind_text(kind: str) -> str:
    """Return the class that is claimed, in words.

    Parameters
    ----------
    kind : str
        "unbiased", "contractive" or "none".
    """
    return "no claim" if kind == "none" else kind


@dataclass(frozen=True)
class _OfFile(Answered):
    """The operators on the vector of a file."""

    file: str
    tensors: tuple[str, ...]
    left_out: tuple[str, ...]
    d: int
    draws: int
    operators: list[Measured]
    assumed: tuple[str, ...] = ()

    def answer(self) -> Answer:
        """Return which compressor has the smallest error at how many bits."""
        points = sorted(self.operators, key=lambda point: (octave(point.bits), point.nmse))
        best: dict[int, Measured] = {}
        for point in points:
            if all(point.nmse < cheaper.nmse for cheaper in best.values()):
                best[octave(point.bits)] = point
        shown = {
            f"up to {2.0**power:g}": f"{point.operator} ({point.bits:.3g} bits, NMSE {point.nmse:.3g})"
            for power, point in best.items()
        }
        rows = tuple(
            (p.operator, f"{p.bits:.3f}", f"{p.nmse:.3g}", "" if p.gap is None else f"{p.gap:.3f}", kind_text(p.kind))
            for p in points
        )
        note = NOTE.format(d=number_text(self.d), varying=varying_note(points), excess=excess_note(points))
        single = len(shown) == 1
        return Answer(
            f"Smallest error: {next(iter(shown.values()))}." if single else "Smallest error by bits per coordinate:",
            ({} if single else shown) | {"status": STATUS} | of_file(self.tensors, self.left_out),
            (Table(COLUMNS, rows, left=frozenset({"claim"}), note=note),),
            assumed=self.assumed,
            evidence=evidence_of(self.operators) | of_file(self.tensors, self.left_out),
        )


def _run(file: str, *, operators: Sequence[str] | None = None, draws: int = DRAWS, seed: int = 0) -> _OfFile:
    """Measure on the tensors of a file.

    Parameters
    ----------
    file : str
        A .npy array, or a .npz, .pt or .safetensors file of tensors.
    operators : sequence of str or None, optional
        Specifications such as qsgd:4; one of every kind unless given.
    """
    from operators import all_operators

    from ..sources.tensor_files import read, shown

    content = read(file)
    x = finite_vector(content.vector)
    asked: Sequence[str | Operator] = operators or [cls.examples()[0] for cls in all_operators().values()]
    measured = [measure(operator, x, draws=draws, seed=seed) for operator in asked]
    kinds = () if operators else ("one compressor of every kind",)
    return _OfFile(
        *(shown(file), content.read, content.left_out, x.size, draws, measured),
        assumed=(*kinds, *drawn(draws, seed)),
    )


def drawn(draws: int, seed: int) -> tuple[str, ...]:
    """Return the defaults that a measurement has taken.

    Parameters
    ----------
    draws : int
        Messages of each compressor.
    seed : int
        Of their randomness.
    """
    return (f"{DRAWS} messages per compressor",) * (draws == DRAWS) + ("seed 0",) * (seed == 0)


CALL = Call(
    name="measure",
    summary="bits, error and gap of compressors on a gradient (.npy or .pt, loaded without pickle)",
    place=10,
    function=measure,
    command=Command(
        examples=("gradient.npy --operators tcdq:omega=1 qsgd:4 topk:0.01",),
        run=_run,
        kinds={"operators": Specifications()},
    ),
)
