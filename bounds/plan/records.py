"""What goes into a plan and what comes out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..bound import Bound, Status
from ..claims import Claim, Unbiased
from ..properties import Property
from ..tau.compressed import CompressedOptimum

UNBIASED_STAGES = "two shots have theorems here for unbiased operators at both stages only"


class Infeasible(ValueError):  # noqa: N818  a name users are told to catch
    """No candidate can do it; ``reasons`` says for each which assumption failed."""

    def __init__(self, reasons: dict[str, str]) -> None:
        super().__init__("no candidate is feasible: " + "; ".join(f"{name}: {why}" for name, why in reasons.items()))
        self.reasons = reasons


@dataclass(frozen=True)
class Candidate:
    """A compressor to consider: its claim at the model's dimension and the bits of one worker's message.

    Parameters
    ----------
    name : str
        As it is shown.
    claim : Claim
        What the operator promises.
    bits : float, bits
        Exact or an upper bound of the mean, >= 0.  An uncompressed exchange is Unbiased(0) at the dense length.
    second : Unbiased or None, optional
        What the owners' operator promises where the mean is formed in two shots; None if messages are gathered.
    """

    name: str
    claim: Claim
    bits: float
    second: Unbiased | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.bits < math.inf:
            raise ValueError(f"bits must be finite and >= 0; got bits = {self.bits} for {self.name!r}")


@dataclass(frozen=True)
class Smooth:
    """A smooth problem with known constants; the error is the mean of ``E|grad F|^2`` over all local steps.

    Parameters
    ----------
    gap : float
        F(x_1) - inf F > 0.  L > 0 : smoothness.  sigma2 >= 0 : variance of one worker's mini-batch gradient.
    L : float
        Smoothness constant of F; 0 < L.
    sigma2 : float
        Variance of one worker's mini-batch gradient; 0 <= sigma2.
    G : float or None, optional
        Root of a bound on ``E|g|^2`` of every local gradient; only biased compressors, which need error feedback, use
        it.
    convex : bool, optional
        Whether F is known to be convex: local steps then cost an eighth, with an unbiased operator a quarter.
    """

    gap: float
    L: float
    sigma2: float
    G: float | None = None
    convex: bool = False


@dataclass(frozen=True)
class Conditioned:
    """A strongly convex problem of which only the condition number kappa >= 1 is known; no local steps.

    The error is what the method's theorem says, by default ``E|x - x*|^2`` relative to its initial value; of "diana" it
    is the Lyapunov function, which also holds the shifts.

    Parameters
    ----------
    kappa : float, optional
        Condition number L/mu, >= 1.
    method : str, optional
        A rate in ``total_communication.methods()`` that takes kappa, m, omega and epsilon.
    dense_bits : float or None, bits, optional
        Length of an uncompressed gradient; "diana_distance" sends one in its first round.
    dense_s : float or None, seconds, optional
        Seconds of averaging it, by default those of the runtime model.
    """

    kappa: float = 100.0
    method: str = "diana_distance"
    dense_bits: float | None = None
    dense_s: float | None = None


@dataclass(frozen=True)
class Option:
    """What one candidate would cost; if not feasible, ``reason`` names the assumption that failed.

    Parameters
    ----------
    name : str
        Of the candidate.
    feasible : bool
        Whether a theorem covers the candidate.
    reason : str, optional
        Why it is not feasible, in words.
    theorem : str, optional
        The Bound behind it, with its status.
    status : Status or None, optional
        How far the theorem behind it can be trusted.
    eta : float or None, optional
        Learning rate, None if the theorem sets it.
    tau : int, optional
        Local steps a round.  rounds, steps (local), seconds, bits (sent by one worker) : for the whole run; for a time
        budget the rounds that end by then, on average at least.
    rounds : int, optional
        Communication rounds of the run.
    steps : int, optional
        Local steps of the run.
    seconds : float, optional
        Seconds of the whole run.
    bits : float, bits, optional
        Bits that one worker sends in the whole run.
    error : float, optional
        Certified upper end of the bound there.
    relative_cost : float, optional
        Seconds (for a target) or error (for a budget) over the best option's, >= 1.
    """

    name: str
    feasible: bool
    reason: str = ""
    theorem: str = ""
    status: Status | None = None
    eta: float | None = None
    tau: int = 0
    rounds: int = 0
    steps: int = 0
    seconds: float = math.inf
    bits: float = math.inf
    error: float = math.inf
    relative_cost: float = math.inf


@dataclass(frozen=True)
class Plan:
    """The candidates with their costs.

    Parameters
    ----------
    ranking : tuple of Option
        Every candidate, best first, infeasible ones last.
    joint : CompressedOptimum or None, optional
        The optimum over real tau and random-k ratios u = 1 + omega (``tau.compressed_optimum``), if ``dense_bits`` was
        given; without latency u/tau = eta L m/2, so that above 1 it pays more to compress than to skip averagings.
    """

    ranking: tuple[Option, ...]
    joint: CompressedOptimum | None = None

    @property
    def best(self) -> Option:
        """The winner."""
        return self.ranking[0]


class Refused(ValueError):  # noqa: N818  a reason, not an error of the caller
    """Why one candidate is not feasible."""


def refuse_recalled(theorem: Bound, allow_recalled: bool) -> None:
    """Refuse a recalled theorem unless it is allowed."""
    if theorem.status is Status.RECALLED and not allow_recalled:
        raise Refused(f"{theorem.name} is recalled, not proved; pass allow_recalled=True to use it")


def refuse_unmet(theorem: Bound, setting: Iterable[Property | str] | None) -> None:
    """Refuse a theorem that needs more of problem and gradients than the caller's setting implies.

    What it needs of operator, method and times is the plan's own choice.  None leaves all hypotheses to the reader.
    """
    if setting is None:
        return
    lacking = [item.words for item in theorem.setting.missing(setting) if item.kind in ("problem", "noise")]
    if lacking:
        raise Refused(f"not covered: {theorem.name} needs: {'; '.join(lacking)}: add what holds to setting")
