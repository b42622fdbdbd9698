"""Seconds and claims of an averaging on a cluster: gathered, in two shots, in nodes, summed or overlapped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from bounds.claims import Claim, Contractive, NoClaim, Unbiased, UnbiasedMean
from bounds.runtime import RuntimeModel, seconds_per_step_in_flight

from .cluster import Cluster
from .links import Exchange

if TYPE_CHECKING:
    from operators import Operator
    from operators.summed import Summed


# -- gather and two shots ------------------------------------------------------------------------------

DENSE_BITS = 32


@dataclass(frozen=True)
class Travel:
    """One averaging of one operator's messages.

    Parameters
    ----------
    claim : Claim
        Of one worker's message, or what stands for it in a theorem when the mean is rounded too: errors of the m
        workers average to claim/m times their mean energy.
    bits : float, bits
        Of one worker's message, on average at most.
    link_bits : float, bits
        What the communication model counts of one message.
    result_bits : float or None, bits
        What it counts of the result that returns.
    encoded : float
        Vectors of d coordinates that the busiest rank encodes.
    decoded : float
        Vectors of d coordinates that the busiest rank decodes.
    words : str
        The way, in words.
    second : Unbiased or None, optional
        What the owners' operator promises for a shard, in two shots.
    round_bits : tuple of float, bits, optional
        What the communication model counts of every round, where there are several, one after the other.
    dense_bits : float, bits, optional
        Length of an uncompressed vector, where nodes sum exactly inside.
    first_encoded : float, optional
        Of ``encoded``, what the workers' operator encodes; the owners' encodes the rest.
    last_decoded : float, optional
        Of ``decoded``, what is decoded of the owners' messages.
    pieces : float, optional
        Messages into which a vector is cut, each encoded and decoded alone.
    """

    exchange: Exchange
    claim: Claim
    bits: float
    link_bits: float
    result_bits: float | None
    encoded: float
    decoded: float
    words: str
    second: Unbiased | None = None
    round_bits: tuple[float, ...] = ()
    dense_bits: float = 0.0
    first_encoded: float = 1.0
    last_decoded: float = 1.0
    pieces: float = 1.0

    def communicate_s(self, cluster: Cluster) -> float:
        """Return seconds of the links in one averaging."""
        return _communicate_s(self, cluster)

    def cut(self, messages: int) -> Travel:
        """Return how one of so many equal messages of the same vector travels; coding is that of all of them.

        Parameters
        ----------
        messages : int
            How many.
        """
        return replace(
            self,
            bits=self.bits / messages,
            link_bits=self.link_bits / messages,
            result_bits=None if self.result_bits is None else self.result_bits / messages,
            round_bits=tuple(bits / messages for bits in self.round_bits),
            dense_bits=self.dense_bits / messages,
            pieces=self.pieces * messages,
        )


@lru_cache(maxsize=1024)
def _communicate_s(way: Travel, cluster: Cluster) -> float:
    result, dense = way.result_bits, way.dense_bits
    rounds = way.round_bits or (way.link_bits,)
    averagings = (cluster.averaging_s(b, way.exchange, result_bits=result, dense_bits=dense) for b in rounds)
    return sum(averaging.midpoint for averaging in averagings)


def travel(operator: Operator, claim: Claim, bits: float, d: int, cluster: Cluster) -> Travel:
    """Return how these messages travel: binary32 is summed on its way, short floats in binary32, all others are
    gathered.

    Casts to short floats (ring, parameter server): every rank gets one share of all casts, sums it in binary32 and
    returns it.  A stochastic cast rounds the mean once more, so that both ways are short: with constant omega each, the
    mean's error is at most (omega (m + 1 + omega)/m) times the mean energy of the m vectors, unbiased, hence omega (m +
    1 + omega) stands for omega.  (With learned shifts the summing rank adds their mean before it rounds; its noise is
    then ``omega E|g|^2``, at most what this constant allows.)  Rounding to nearest would be biased at every further
    rounding, for which no theorem here stands, so the mean returns in binary32 and the cast's own claim holds.
    On nodes casts are sent like all others.  Everything else is gathered: each rank, or the parameter server, which
    returns binary32, decodes all m messages.
    """
    from operators.compressors.float_cast import FloatCast
    from operators.compressors.identity import Identity

    if isinstance(operator, Identity):
        return Travel("sum", Unbiased(0.0), bits, bits, None, 0, 0, "summed on its way")
    summable = cluster.topology != "tree" and cluster.nodes is None
    if isinstance(operator, FloatCast) and summable and not isinstance(claim, NoClaim):
        return _cast(claim, bits, d, cluster)
    if isinstance(claim, Contractive) and claim.alpha == 0:
        claim = Unbiased(0.0)  # no error at all, as of every top-k at d = 1
    result = DENSE_BITS * d if cluster.topology == "parameter_server" else None
    words = f"gathered: {'the server' if result else 'every rank'} decodes {cluster.workers}"
    return Travel("gather", claim, bits, bits, result, 1, cluster.workers, words)


def _cast(claim: Claim, bits: float, d: int, cluster: Cluster) -> Travel:
    m, served = cluster.workers, cluster.topology == "parameter_server"
    again = isinstance(claim, Unbiased)
    if isinstance(claim, Unbiased):
        claim = Unbiased(claim.omega * (m + 1 + claim.omega))
    back = bits if again else DENSE_BITS * d
    words = f"summed in binary32, the mean returns {'cast once more' if again else 'in binary32'}"
    encoded = 1 + (1 if served else 1 / m) if again else 1
    decoded = (m if served else 1) + (1 if again else 0)
    link = bits if served else (bits + back) / 2
    return Travel("sum", claim, bits, link, back, encoded, decoded, words)


def in_two_shots(first: Operator, second: Operator, d: int, cluster: Cluster) -> Travel:
    """Return how compressed shards travel to their owners, and the compressed means of the shards to all.

    The owner of a shard, or the parameter server of all of them, decodes what it gets, takes the mean and encodes it;
    everybody decodes the whole result.  Claims are those for vectors as long as a shard, the larger of its two lengths.

    Parameters
    ----------
    first, second : Operator
        Of the workers and of the owners.
    d : int
        Number of coordinates.
    cluster : Cluster
        Workers and links.

    Raises
    ------
    ValueError
        For fewer than two workers or coordinates than workers, and for operators without an unbiased claim or a stated
        length.
    """
    m = cluster.workers
    owners = 1 if cluster.topology == "parameter_server" else m
    if m < 2 or d < owners:
        raise ValueError(f"two shots need 2 workers and a coordinate for each; got {m} workers, d = {d}: gather")
    shard = -(-d // owners)
    claims = [claim_of_shards(operator, {shard, d // owners}) for operator in (first, second)]
    up, back = (owners * stated_bits(operator, shard) for operator in (first, second))
    words = f"in two shots: {'the server' if owners == 1 else 'owners'} return{'s' * (owners == 1)} {back / d:.4g} bits"
    encoded, decoded = 1 + 1 / owners, 1 + m / owners
    words = f"{words} a coordinate"
    return Travel("two_shot", claims[0], up + back / m, up, back, encoded, decoded, words, claims[1], pieces=owners)


def stated_bits(operator: Operator, d: int) -> float:
    """Return the length that an operator states for its messages: exact, else of the mean, else the longest.

    Parameters
    ----------
    operator : Operator
        The compressor.
    d : int
        Number of coordinates.

    Raises
    ------
    ValueError
        If it states none.
    """
    size = operator.bits(d)
    bits = next((b for b in (size.exact, size.expected_upper, size.worst_case) if b is not None), None)
    if bits is None:
        raise ValueError("it states no message length")
    return bits


def claim_of_shards(operator: Operator, lengths: set[int]) -> Unbiased:
    """Return what an operator promises for every shard.

    Parameters
    ----------
    operator : Operator
        The compressor.
    lengths : set of int
        Of the shards.

    Raises
    ------
    ValueError
        Unless it is unbiased.
    """
    claims = [operator.claim(length) for length in lengths]
    unbiased = [claim for claim in claims if isinstance(claim, Unbiased)]
    if len(unbiased) < len(claims):
        raise ValueError("two shots have theorems here for unbiased operators at both stages only")
    return max(unbiased, key=lambda claim: claim.omega)


# -- between nodes -------------------------------------------------------------------------------------
# Every worker of a node owns the node's exact mean of one shard, and exchanges it with the workers in its place.  The
# errors of n nodes with constant omega average to omega/n times the mean energy of the nodes' means.  That energy is at
# most that of the m = n p workers' vectors; so p omega stands for omega among m workers.


def gathered_by_nodes(operator: Operator, d: int, cluster: Cluster) -> Travel:
    """Return how messages of nodes travel to all other nodes.

    Parameters
    ----------
    operator : Operator
        The compressor of a node's mean.
    d : int
        Number of coordinates.
    cluster : Cluster
        With nodes.

    Raises
    ------
    ValueError
        For fewer than two nodes, fewer coordinates than workers of a node, and operators without an unbiased claim or
        a stated length.
    """
    n, p = _shape(cluster, d)
    shard = -(-d // p)
    claim = claim_of_shards(operator, {shard, d // p})
    bits = p * stated_bits(operator, shard)
    words = f"summed exactly in nodes of {p}, then gathered by {n} nodes"
    return Travel(
        "node_gather",
        Unbiased(p * claim.omega),
        bits,
        bits,
        None,
        1 / p,
        n / p,
        words,
        dense_bits=DENSE_BITS * d,
        pieces=p,
    )


def in_two_shots_of_nodes(first: Operator, second: Operator, d: int, cluster: Cluster) -> Travel:
    """Return how shards of nodes' messages travel to their owners, and compressed means to all nodes.

    Parameters
    ----------
    first, second : Operator
        Of the nodes and of the owners.
    d : int
        Number of coordinates.
    cluster : Cluster
        With nodes.

    Raises
    ------
    ValueError
        For fewer than two nodes, fewer coordinates than workers, and operators without an unbiased claim or a stated
        length.
    """
    n, p = _shape(cluster, d)
    m = n * p
    shard = -(-d // m)
    claims = [claim_of_shards(operator, {shard, d // m}) for operator in (first, second)]
    up, back = (m * stated_bits(operator, shard) for operator in (first, second))
    words = f"summed exactly in nodes of {p}, then in two shots between {n} nodes: owners return {back / d:.4g} bits"
    return Travel(
        "node_two_shot",
        Unbiased(p * claims[0].omega),
        up + back / n,
        up,
        back,
        1 / p + 1 / m,
        2 / p,
        f"{words} a coordinate",
        claims[1],
        dense_bits=DENSE_BITS * d,
        first_encoded=1 / p,
        last_decoded=1 / p,
        pieces=m,
    )


def _shape(cluster: Cluster, d: int) -> tuple[int, int]:
    n, p = cluster.nodes or 1, cluster.gpus_per_node or 1
    if n < 2 or d < cluster.workers:
        raise ValueError(f"messages of nodes need 2 nodes and a coordinate for each worker; got {n} nodes, d = {d}")
    return n, p


# -- sums on the way -----------------------------------------------------------------------------------


def summed_travel(method: Summed, d: int, cluster: Cluster) -> Travel:
    """Return how the terms of a method travel: every round is a sum on the way of its own.

    A parameter server reads the terms of all; elsewhere every rank reads as much as one vector.  The claim is that of
    all ranks' parts together, ``Summed.claim``.

    Parameters
    ----------
    method : Summed
        What is summed.
    d : int
        Number of coordinates.
    cluster : Cluster
        Workers and links.

    Raises
    ------
    ValueError
        For more workers than the method can add up.
    """
    m = cluster.workers
    rounds = tuple(float(bits) for bits in method.bits_of_rounds(d, m))
    decoded = m if cluster.topology == "parameter_server" else 1
    claim, words = method.claim(d, m), f"summed on its way in {len(rounds)} round{'s' * (len(rounds) > 1)}"
    if not isinstance(claim, NoClaim):
        words += ", its omega one of all ranks' messages together"
    return Travel("sum", claim, sum(rounds), sum(rounds), None, 1, decoded, words, round_bits=rounds)


def errors(method: Summed, d: int, m: int) -> tuple[float | None, float | None, str]:
    """Return the joint claim for independent and for equal vectors, over the squared length of the mean, and its name.

    Parameters
    ----------
    method : Summed
        What is summed.
    d : int
        Number of coordinates.
    m : int
        Number of workers.
    """
    from bounds.theorems import shared_scale_error  # a tenth of a second for all theorems, which no other way needs

    claim = method.claim_mean(d, m)
    if not isinstance(claim, UnbiasedMean):
        return None, None, ""
    return claim.of_squares * m + claim.of_mean, claim.of_squares + claim.of_mean, shared_scale_error.name


# -- overlap with computation --------------------------------------------------------------------------


def step_in_flight_s(
    cluster: Cluster,
    *,
    tau: int,
    bits: float,
    exchange: Exchange = "sum",
    in_flight: int | None = None,
    parts: int = 1,
    result_bits: float | None = None,
    dense_bits: float = 0.0,
) -> float:
    """Return mean seconds of a local step when averages travel while the workers go on, whole or in fragments.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    tau : int
        Local steps between two averages of the same fragment, a multiple of parts.
    bits : float, bits
        Length of one worker's message of the whole model.
    exchange : Exchange, optional
        How messages travel, as in ``Cluster.communication``.
    in_flight : int or None, optional
        Steps made while a message travels, 0 to tau/parts; None: all of them.
    parts : int, optional
        Fragments of the model, sent one after the other.
    result_bits : float or None, bits, optional
        Length of what all owners together send back of the whole model.
    dense_bits : float, bits, optional
        Length of the uncompressed model, which is summed inside nodes.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    ``bounds.runtime.seconds_per_step_in_flight`` has the formula and its assumptions.

    Examples
    --------
    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=4, bandwidth_bit_per_s=1e9, latency_s=0.01, step_s=0.5, compute="constant")
    >>> [round(rd.step_in_flight_s(cluster, tau=40, bits=3.2e9, in_flight=steps), 4) for steps in (0, 5, 10)]
    [0.6215, 0.559, 0.5]
    """
    result = None if result_bits is None else result_bits / max(parts, 1)
    communication = cluster.communication(exchange, result_bits=result, dense_bits=dense_bits / max(parts, 1))
    model = RuntimeModel(cluster.step(), communication=communication, m=cluster.workers)
    return seconds_per_step_in_flight(model, tau=tau, in_flight=in_flight, parts=parts, bits=bits)


def step_overlapped_s(
    cluster: Cluster, *, bits: float, backward_fraction: float, exchange: Exchange = "sum", dense_bits: float = 0.0
) -> float:
    """Return mean seconds of a synchronous step that communicates during the backward pass.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    bits : float, bits
        Length of one worker's gradient message.
    backward_fraction : float
        Share of a step spent in the backward pass, 0 < backward_fraction <= 1.
    exchange : Exchange, optional
        How messages travel, as in ``Cluster.communication``.
    dense_bits : float, bits, optional
        Length of the uncompressed gradient, which is summed inside nodes.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    As ``RuntimeModel.seconds_per_overlapped_step``: what is sent last is not charged beyond the backward pass, so that
    with few large buckets a step takes longer.
    """
    communication = cluster.communication(exchange, dense_bits=dense_bits)
    model = RuntimeModel(cluster.step(), communication=communication, m=cluster.workers)
    return model.seconds_per_overlapped_step(backward_fraction=backward_fraction, bits=bits)
