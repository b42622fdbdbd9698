"""What one compressed all-reduce costs: bits, seconds, the error of the mean, and the distance to the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bounds.claims import Contractive, NoClaim, Unbiased
from bounds.limits import exact_sum_rate, gathered_rate, mean_exchange_rate, mean_received_rate, two_shot_rate
from bounds.theorems import gather_error, two_shot_error

from .. import numbers
from ..cluster.cluster import Cluster
from ..cluster.codec import FREE, Codecs, checked_codecs, codec_of
from ..cluster.compressors import compressor_of, operator_of
from ..cluster.travel import DENSE_BITS, Travel, errors, in_two_shots, stated_bits, summed_travel, travel
from ..numbers import real, whole
from ..plans.choosing import averaging
from ..plans.problem import vacuous
from ..records import Answer, Answered, plain
from .arguments import coding_seconds
from .call import Call, Command, Route
from .shared import coordinates

if TYPE_CHECKING:
    from operators import Operator
    from operators.summed import Summed

EXCHANGE_WORDS = {"two_shot": "in two shots", "gather": "gathered", "sum": "summed on the way"}
ALIKE = 1.01  # lengths that differ by less differ by headers
EXCHANGES = ("auto", "gather", "two_shot")


@dataclass(frozen=True)
class AllReduce(Answered):
    """One averaging of m vectors of d coordinates.

    Parameters
    ----------
    operator : str
        Specification of the workers' operator.
    returned : str
        That of the owners' operator in two shots; empty otherwise.
    exchange : str
        "sum", "gather" or "two_shot".
    d : int
        Number of coordinates.
    m : int
        Number of workers.
    sent_bits : float, bits
        Sent by one rank.
    received_bits : float, bits
        Received by one rank.
    dense_bits : float, bits
        What a rank sends in a ring all-reduce of binary32.
    communicate_s : float, seconds
        Of the links.
    encode_s : float, seconds
        Of encoding by the busiest rank.
    decode_s : float, seconds
        Of decoding by the busiest rank.
    nmse : float or None
        Bound of ``E|result - mean|^2/|mean|^2`` for independent vectors of mean zero and equal length; None without
        an unbiased claim.
    aligned_nmse : float or None
        The same for equal vectors.
    limit_bits : float or None, bits
        Least bits per coordinate that ranks receive on average at this nmse, Gaussian vectors, any exchange
        (``mean_exchange_rate``, and ``mean_received_rate`` where that does not apply); None without an nmse below 1.
    ideal_bits : float or None, bits
        What this exchange receives a coordinate with long ideal blocks at this nmse; None where it says nothing.
    exact_bits : float, bits
        Least bits per coordinate that ranks receive on average for an exact sum of uniform words, any exchange
        (``exact_sum_rate``): words of the integers that are summed, of 32 bits for other operators.
    theorem : str
        Behind the error.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    """

    operator: str
    returned: str
    exchange: str
    d: int
    m: int
    sent_bits: float
    received_bits: float
    dense_bits: float
    communicate_s: float
    encode_s: float
    decode_s: float
    nmse: float | None
    aligned_nmse: float | None
    limit_bits: float | None
    ideal_bits: float | None
    exact_bits: float
    theorem: str
    assumed: tuple[str, ...] = ()

    def answer(self) -> Answer:
        """Return what one averaging takes, sends and errs."""
        d, sent = self.d, self.sent_bits / self.d
        way = EXCHANGE_WORDS.get(self.exchange, self.exchange)
        back = f", {self.returned} back" if self.returned and self.returned != self.operator else ""
        coding = self.encode_s + self.decode_s
        error = (
            ""
            if self.nmse is None or self.is_vacuous
            else (f"at most {self.nmse:.4g} |mean|^2 for independent vectors, {self.aligned_nmse:.4g} for equal")
        )
        limit = (
            ""
            if self.limit_bits is None
            else (
                f"no exchange receives fewer than {self.limit_bits:.4g} bits per coordinate at this error; this is "
                f"{self.gap_bits:.4g} above it"
            )
        )
        ideal = self.ideal_bits is not None and self.limit_bits is not None
        facts = {
            "exchange": f"{self.operator} {way}{back}",
            "error": self.remark if self.is_vacuous else error,
            "limit": limit,
            "ideal codec": f"{self.ideal_bits - self.limit_bits:.4g} above it, sent the same way" if ideal else "",  # type: ignore[operator]
            "exact sum": f"no exchange receives fewer than {self.exact_bits:.4g} bits per coordinate without error",
            "theorem": self.theorem,
        }
        times = self.dense_bits / self.sent_bits if self.sent_bits else 1.0
        return Answer(
            f"{self.seconds:.4g} s (links {self.communicate_s:.4g}, coding {coding:.4g}): "
            f"{sent:.4g} bits sent per coordinate, {times:.3g} x fewer than binary32.",
            facts,
            assumed=self.assumed,
            evidence={"bits": f"binary32 in a ring sends {self.dense_bits / d:.4g} per coordinate"},
        )

    @property
    def seconds(self) -> float:
        """Of the whole averaging, one part after the other."""
        return self.communicate_s + self.encode_s + self.decode_s

    @property
    def is_vacuous(self) -> bool:
        """Whether the error is at least 1, the error of an answer of zeros, which needs no message."""
        return self.nmse is not None and self.nmse >= 1

    @property
    def remark(self) -> str:
        """Why the error says nothing, in words; empty where it says something."""
        return "" if self.nmse is None else vacuous(self.nmse, 1.0, "the error of an answer of zeros, without messages")

    @property
    def gap_bits(self) -> float | None:
        """Bits per coordinate that are received above the limit."""
        return None if self.limit_bits is None else self.received_bits / self.d - self.limit_bits

    def to_dict(self) -> dict[str, Any]:
        """Return fields and sums as plain values."""
        fields = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}
        sums = {"seconds": plain(self.seconds), "gap_bits": plain(self.gap_bits)}
        return {**fields, **sums, "vacuous": self.is_vacuous}


def allreduce(
    *,
    d: numbers.Number,
    m: numbers.Number,
    operator: str | Operator | Summed,
    exchange: Literal["auto", "gather", "two_shot"] = "auto",
    second: str | Operator | None = None,
    bandwidth_bit_per_s: numbers.Number | None = None,
    latency_s: numbers.Number | None = None,
    codec: Codecs | None = None,
) -> AllReduce:
    """Return bits, seconds and error of one averaging, and its distance to the limit of any exchange.

    Parameters
    ----------
    d : array_like
        Number of coordinates.
    m : array_like
        Number of workers, >= 2.
    operator : str or Operator or Summed
        Compressor such as tcdq:omega=1, or shared_scale:12, summed on the way.  In Python also an ``Operator``; what
        ``operators.summed`` sums on the way, such as "shared_scale:12,block=256", has an exchange of its own.
    exchange : {"auto", "gather", "two_shot"}, optional
        How messages travel.  "auto": with a link of yours (``bandwidth_bit_per_s`` or ``latency_s``) what takes
        fewer seconds, codecs included; without one what sends fewer bits.  Alike, as for two workers, is gather.
    second : str or Operator or None, optional
        The owners' operator in two shots, the workers' unless given.
    bandwidth_bit_per_s : array_like, bit/s, optional
        Bandwidth of one link of the ring in bit/s, 1e10 unless given; given, auto compares seconds.
    latency_s : array_like, seconds, optional
        Seconds of one hop besides its bytes, 50e-6 unless given; given, auto compares seconds.
    codec : Codec or mapping or str, optional
        Seconds of encoding and decoding, as for ``plan``; free unless given.

    Raises
    ------
    ValueError
        For m < 2, an unknown exchange, and operators that do not fit it.

    Examples
    --------
    >>> import ratedist as rd
    >>> round(rd.allreduce(d=400_000, m=8, operator="tcdq:omega=0.1", exchange="two_shot").nmse, 6)
    0.21
    """
    from operators.summed import Summed

    if exchange not in EXCHANGES:
        raise ValueError(f"exchange must be one of {', '.join(EXCHANGES)}; got {exchange!r}: choose one of them")
    dimension, workers = coordinates(d), whole("m", m)
    if workers < 2:
        raise ValueError(f"m must satisfy m >= 2; got m = {workers}: nothing is exchanged by one worker")
    has_link = bandwidth_bit_per_s is not None or latency_s is not None
    links: dict[str, Any] = {"bandwidth_bit_per_s": bandwidth_bit_per_s, "latency_s": latency_s}
    stated: dict[str, Any] = {name: real(name, value) for name, value in links.items() if value is not None}
    cluster = Cluster(workers=workers, **stated)
    coded = checked_codecs("free" if codec is None else codec)
    first = compressor_of(operator)
    if isinstance(first, Summed):
        if exchange != "auto" or second is not None:
            raise ValueError(
                f"{first} is summed on the way and has an exchange of its own: leave exchange and second out; got "
                f"exchange = {exchange!r} and second = {second}"
            )
        return _answered(first, None, summed_travel(first, dimension, cluster), dimension, cluster, coded)
    back = first if second is None else operator_of(second)

    def cost(way: Travel) -> float:
        if not has_link:
            return _sent(way, workers)
        return sum(
            _seconds(first, back if way.exchange == "two_shot" else None, way, dimension, cluster, coded).values()
        )

    way = _way(first, back, dimension, cluster, exchange, cost, chosen=second is not None)
    return _answered(first, back if way.exchange == "two_shot" else None, way, dimension, cluster, coded)


def _way(
    first: Operator,
    second: Operator,
    d: int,
    cluster: Cluster,
    exchange: str,
    cost: Callable[[Travel], float],
    *,
    chosen: bool,
) -> Travel:
    """Return the way that was asked for, or the one that costs less; messages that can be summed are summed."""
    gathered = travel(first, first.claim(d), stated_bits(first, d), d, cluster)
    if gathered.exchange == "sum" and not chosen:
        return gathered
    if exchange == "gather":
        return gathered
    try:
        shots = in_two_shots(first, second, d, cluster)
    except ValueError:
        if exchange == "two_shot":
            raise
        return gathered
    if exchange == "two_shot" or chosen:
        return shots
    return gathered if cost(gathered) <= ALIKE * cost(shots) else shots  # alike, gathering has less error


def _sent(way: Travel, m: int) -> float:
    """Return the bits that one rank sends in a ring or directly; it receives as many."""
    if way.exchange == "gather":
        return (m - 1) * way.bits
    if way.exchange == "sum":
        return 2 * (m - 1) / m * way.link_bits
    return (m - 1) / m * (way.link_bits + float(way.result_bits or 0))


def _seconds(
    first: Operator | Summed, second: Operator | None, way: Travel, d: int, cluster: Cluster, coded: Any
) -> dict[str, float]:
    """Return seconds of the links and of both codecs."""
    workers_codec = codec_of(coded, first, d) if way.encoded else FREE
    owners_codec = workers_codec if second is None else codec_of(coded, second, d)
    return averaging(way, workers_codec, owners_codec, d, cluster)


def _answered(
    first: Operator | Summed, second: Operator | None, way: Travel, d: int, cluster: Cluster, coded: Any
) -> AllReduce:
    """Return what an averaging costs; with the owners' operator in two shots."""
    from operators import Operator, specification
    from operators.summed import SharedScale

    m = cluster.workers
    seconds = _seconds(first, second, way, d, cluster, coded)
    nmse, aligned, theorem = _errors(way, m) if isinstance(first, Operator) else errors(first, d, m)
    sent = _sent(way, m)
    judged = nmse if nmse is not None and 0 < nmse < 1 - 1 / m else None
    rate = two_shot_rate if way.exchange == "two_shot" else gathered_rate
    return AllReduce(
        operator=specification(first),
        returned="" if second is None else specification(second),
        exchange=way.exchange,
        d=d,
        m=m,
        sent_bits=sent,
        received_bits=sent,
        dense_bits=2 * (m - 1) / m * DENSE_BITS * d,
        **seconds,
        nmse=nmse,
        aligned_nmse=aligned,
        limit_bits=None if judged is None else _limit(m, judged),
        ideal_bits=None if judged is None or way.exchange == "sum" else rate(m=m, nmse=judged),
        exact_bits=exact_sum_rate(m=m, word_bits=first.word_bits if isinstance(first, SharedScale) else DENSE_BITS),
        theorem=theorem,
        assumed=(*_links_not_said(cluster), *(("free codecs",) if coded == FREE else ())),
    )


def _links_not_said(cluster: Cluster) -> tuple[str, ...]:
    """Return the links that were taken; steps are not part of an averaging."""
    return cluster.with_parts(step_s=cluster.step_s, compute=cluster.compute).assumed()


def _limit(m: int, nmse: float) -> float:
    """Return the larger of the two lower limits on received bits per coordinate that applies."""
    rate = mean_exchange_rate if mean_exchange_rate.holds_at(m=m, nmse=nmse) else mean_received_rate
    return rate(m=m, nmse=nmse)


def _errors(way: Travel, m: int) -> tuple[float | None, float | None, str]:
    """Return the error for independent and for equal vectors, over the squared length of the mean."""
    if isinstance(way.claim, NoClaim | Contractive):
        return None, None, ""
    assert isinstance(way.claim, Unbiased)
    if way.second is None and way.claim.omega == 0:
        return 0.0, 0.0, ""
    independent, equal = {"m": m, "mean_square": m}, {"m": m, "mean_square": 1}
    if way.second is None:
        first, second = (gather_error(omega=way.claim.omega, **at_point) for at_point in (independent, equal))
        return first, second, gather_error.name
    stages = {"omega1": way.claim.omega, "omega2": way.second.omega, "square_of_mean": 1}
    first, second = (two_shot_error(**stages, **at_point) for at_point in (independent, equal))
    return first, second, two_shot_error.name


def _run(*, codec: list[str] | None = None, **given: Any) -> AllReduce:
    from .plan import coding

    return allreduce(codec=coding(codec), **given)


CALL = Call(
    name="allreduce",
    summary="bits, seconds and error of one compressed averaging, and its distance to the limit",
    place=7,
    function=allreduce,
    command=Command(
        examples=(
            "--d 25600000 --m 64 --operator tcdq:omega=0.1",
            "--d 1e6 --m 8 --operator tcdq:omega=0.1 --second tcdq:omega=0.01 --exchange two_shot --json",
            "--d 1e6 --m 8 --operator shared_scale:12,block=256",
        ),
        run=_run,
        kinds={"codec": coding_seconds()},
    ),
    route=Route(
        about="A compressor, the number of workers and how its messages travel.",
        example={"d": 400000, "m": 8, "operator": "tcdq:omega=0.1", "exchange": "two_shot"},
        stated=False,
    ),
)
