"""The record of a pilot run as a file of plain JSON: read, checked, and asked by plans."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bounds.estimate import Estimate, NoiseScale, mean_estimate, noise_scale
from bounds.frame import frame
from bounds.runtime import Empirical
from bounds.tau import tau_star, tau_third_order

from ..cluster.cluster import Cluster, checked_cluster
from ..cluster.codec import Codec
from ..cluster.compressors import operator_of
from ..cluster.links import Link
from ..cluster.travel import DENSE_BITS
from ..numbers import Number
from ..plans.run import Rhythm, rhythm_of
from ..records import LABEL, Answer, Answered, Table
from .prediction import Prediction, Predictor, Sent, StepSeconds
from .progress import SYNCHRONOUS, LocalPath, RoundTrials, gradient2_of, part_of
from .timings import ALL, LEVEL, ExchangeTimings, LinkTimings, OperatorTrial, cluster_of, timed_on

if TYPE_CHECKING:
    from pandas import DataFrame

    from operators import Operator


# -- reading -------------------------------------------------------------------------------------------

VERSION = 2
READ = (1, 2)  # the first had no trial rounds
LARGEST_FILE = 10**8
FLAT = ("losses", "small_norms2", "large_norms2", "taus")
LATER = ("second_secants", "noise_norms2")  # flat fields that a file may lack
ROWS = ("step_s", "survival", "secants", "falls", "bends", "backward_s")

RECORDED_IN = Path(__file__).parent / "recorded"
RECORDED = "gradients, progress and codecs of another training: {training}"  # said of pilots that ratedist carries

PilotT = TypeVar("PilotT")


def stated_in(path: str | Path) -> Any:
    """Return the plain values that a file holds.

    Parameters
    ----------
    path : str or Path
        That ``gpu_validation.pilot`` has written, or the name of a recorded pilot.

    Raises
    ------
    ValueError
        For a file that is missing, too large, or no JSON.
    """
    file = recorded_pilots().get(str(path), Path(path))
    if not file.is_file():
        names = " or ".join(recorded_pilots())
        raise ValueError(f"{path} is no file: give the path that gpu_validation.pilot(path=) has written, or {names}")
    if file.stat().st_size > LARGEST_FILE:
        raise ValueError(f"a pilot must be a file below {LARGEST_FILE} bytes; {path} has {file.stat().st_size}")
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): make a new pilot") from None


@cache
def recorded_pilots() -> dict[str, Path]:
    """Return the files of the pilots that ratedist carries, by name."""
    return {file.stem: file for file in sorted(RECORDED_IN.glob("*.json"))}


def made_of(stated: Any, where: str, make: Callable[..., PilotT]) -> PilotT:
    """Return the pilot that plain values state.

    Parameters
    ----------
    stated : object
        Plain values.
    where : str
        Where they come from, for the error.
    make : callable
        From the fields by their names to the pilot.

    Raises
    ------
    ValueError
        For another version, and what is no pilot.
    """
    version = stated.get("version") if isinstance(stated, dict) else None
    if version not in READ:
        versions = " or ".join(map(str, READ))
        raise ValueError(f"{where} is no pilot of version {versions}; got version {version}: make a new one")
    try:
        rows = {name: tuple(map(tuple, stated[name])) for name in ROWS if name in stated}
        flat = {name: tuple(stated[name]) for name in FLAT + tuple(name for name in LATER if name in stated)}
        trials = tuple(
            OperatorTrial(**_tuples(each) | {"codec": Codec(**each["codec"])}) for each in stated["operators"]
        )
        links = tuple(LinkTimings(**_tuples(each)) for each in stated["links"])
        tried = stated.get("rounds")
        rounds = None if tried is None else RoundTrials.from_dict(tried)
        timed = tuple(ExchangeTimings(**_tuples(each)) for each in stated.get("exchanges", ()))
        parts = {"operators": trials, "links": links, "rounds": rounds, "exchanges": timed}
        return make(**stated | rows | flat | parts)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is no pilot ({type(error).__name__}: {error}): make a new one") from None


def _tuples(stated: Any) -> dict[str, Any]:
    """Return the values of a record with its lists as tuples."""
    return {name: tuple(v) if isinstance(v, Sequence) and not isinstance(v, str) else v for name, v in stated.items()}


# -- the pilot -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pilot(Answered):
    """Measurements of some steps of a training run; all raw numbers, from which the estimates are made.

    Parameters
    ----------
    d : int
        Trained parameters.
    ranks : int
        That took part.
    device : str
        Where the model was.
    threads : int
        Of torch, on each rank.
    step_s : tuple of tuple of float, seconds
        Of one optimizer step with its batch, shape (ranks, n).
    losses : tuple of float
        Of rank 0's steps, shape (n,).
    small_norms2 : tuple of float
        ``|g|^2`` of single batches, shape (k,).
    large_norms2 : tuple of float
        ``|g|^2`` of the mean of two, at the same points, shape (k,).
    taus : tuple of int
        Local steps after which a gradient was taken again, shape (p,).
    survival : tuple of tuple of float
        <g', g>/<g, g> of a batch's gradient g' after that many steps, one row a moment, shape (q, p).
    secants : tuple of tuple of float
        ``|g' - g|/|x' - x|`` over the same steps, shape (q, p).
    operators : tuple of OperatorTrial
        By specification.
    links : tuple of LinkTimings
        Empty for a single process.
    memory_bytes : int
        Most that rank 0's process held, on its device.
    version : int, optional
        Of the file's form.
    falls : tuple of tuple of float, optional
        ``<g, x - x'>`` over the same steps, g of two batches together, shape (q, p); without it there is no prediction.
    bends : tuple of tuple of float, optional
        ``<g - g', x - x'>`` over the same steps, g and g' of one batch, shape (q, p).
    rounds : RoundTrials or None, optional
        What rounds of every choice have gained; None where none were tried.
    exchanges : tuple of ExchangeTimings, optional
        Whole averagings by the ranks; empty for a single process.
    backward_s : tuple of tuple of float, seconds, optional
        Of the backward passes of the steps of ``step_s``, shape (ranks, n).
    sums_at_once : int, optional
        How many sums the ranks' group makes at the same time.
    passes : int, optional
        What the pilot cost a worker, in forward and backward passes; 0 if it is not known.
    steps : int, optional
        Of the whole training; 0 if they are not known.
    recorded : str, optional
        What was trained, for a pilot that ratedist carries; its seconds say nothing of your machine.
    second_secants : tuple of float, optional
        ``4 |g' - 2 g_half + g|/|x' - x|^2`` over the largest of ``taus``, g_half at the midpoint, all of one batch, one
        number a moment, shape (q,).
    noise_norms2 : tuple of float, optional
        ``|g1 - g2|^2`` of two batches at the same point, shape (k,).
    learning_rate : float, optional
        Of SGD, over 1 - momentum; 0 for another optimizer, or if it is not known.
    """

    d: int
    ranks: int
    device: str
    threads: int
    step_s: tuple[tuple[float, ...], ...]
    losses: tuple[float, ...]
    small_norms2: tuple[float, ...]
    large_norms2: tuple[float, ...]
    taus: tuple[int, ...]
    survival: tuple[tuple[float, ...], ...]
    secants: tuple[tuple[float, ...], ...]
    operators: tuple[OperatorTrial, ...]
    links: tuple[LinkTimings, ...]
    memory_bytes: int
    version: int = VERSION
    falls: tuple[tuple[float, ...], ...] = ()
    bends: tuple[tuple[float, ...], ...] = ()
    rounds: RoundTrials | None = None
    exchanges: tuple[ExchangeTimings, ...] = ()
    backward_s: tuple[tuple[float, ...], ...] = ()
    sums_at_once: int = 1
    passes: int = 0
    steps: int = 0
    recorded: str = ""
    second_secants: tuple[float, ...] = ()
    noise_norms2: tuple[float, ...] = ()
    learning_rate: float = 0.0

    # -- estimates ---------------------------------------------------------------------------------------
    def step(self, level: float = LEVEL) -> Estimate:
        """Return mean seconds of a step, over the ranks' means where there are several.

        Parameters
        ----------
        level : float, optional
            Confidence of the interval.
        """
        means = [sum(each) / len(each) for each in self.step_s]
        return mean_estimate(means if len(means) > 1 else self.step_s[0], level, lower=0.0)

    def uncertain_step(self) -> str:
        """Return a warning with the remedy if the interval of a step's time reaches 0, else an empty text."""
        if self.step().interval.lo > 0:
            return ""
        return "its interval reaches 0, so no time is certain: measure more steps, such as twice the moments"

    def backward_share(self) -> float | None:
        """Return the backward passes' seconds over those of all steps, None where they were not timed."""
        spent_s = sum(map(sum, self.backward_s))
        return min(spent_s / sum(map(sum, self.step_s)), 1.0) if spent_s else None

    def noise(self) -> NoiseScale:
        """Return variance of a batch's gradient, squared norm of the mean gradient, and their ratio, in batches."""
        return noise_scale(self.small_norms2, self.large_norms2, small=1, large=2, level=LEVEL)

    def survives(self) -> list[Estimate]:
        """Return what share of a gradient is left after each of ``taus``, over the moments."""
        return [mean_estimate(column, LEVEL) for column in zip(*self.survival, strict=True)]

    def curvature(self) -> float:
        """Return the largest secant: a lower bound of L along the path that was gone."""
        return max(max(row) for row in self.secants)

    def hessian_lipschitz(self) -> float | None:
        """Return an estimate of Q, the Lipschitz constant of the Hessian; None where it was not measured.

        Notes
        -----
        It is the largest second secant of the losses of single batches on the path.  If the third derivative along the
        step is constant, a second secant is its size; in any case it is at most the Q of that batch's loss.  It is no
        bound on the Q of F: tau from it (``tau_star(hessian_lipschitz=)``) is an estimate, not proved.
        """
        return max(self.second_secants, default=None)

    def kurtosis(self) -> float | None:
        """Return an estimate of E|n|^4/(E|n|^2)^2 of a batch's gradient noise n; None where it was not measured.

        Notes
        -----
        The difference u of two independent batches' gradients has E|u|^2 = 2 E|n|^2 and E|u|^4 = 2 E|n|^4 + 2
        (E|n|^2)^2 + 4 E<n1, n2>^2.  So 2 E|u|^4/(E|u|^2)^2 - 1 is at least the kurtosis, with equality where
        independent noises are orthogonal.  Moments are pooled: noise that changes on the path makes it larger.
        """
        if not self.noise_norms2:
            return None
        square = sum(self.noise_norms2) / len(self.noise_norms2)
        fourth = sum(each**2 for each in self.noise_norms2) / len(self.noise_norms2)
        return max(1.0, 2 * fourth / square**2 - 1) if square else None

    def local_steps(self, cluster: Cluster) -> tuple[int, int] | None:
        """Return estimates of tau for SGD: that of Theorem 2, and that of the third-order bound.

        Parameters
        ----------
        cluster : Cluster
            Workers and links.

        Returns
        -------
        tuple of int or None
            Both numbers; None where a constant was not measured, for one worker, free averages, or if eta L > 1.

        Notes
        -----
        The constants are estimates of this pilot, no bounds: L is ``curvature()``, and every Hessian is taken to be at
        least -L.  gap is the first loss, as if inf F were 0.  The time is that of ``steps`` steps on the cluster.
        """
        Q, kurtosis, eta, L = self.hessian_lipschitz(), self.kurtosis(), self.learning_rate, self.curvature()
        sigma2, gap, bits = self.noise().trace.value, self.losses[0], DENSE_BITS * self.d
        time_s = self.steps * cluster.step_seconds_value(1, bits)[0]
        delay_s = cluster.averaging_s(bits).midpoint
        is_measured = Q and kurtosis and eta and self.steps
        if not is_measured or min(sigma2, gap, delay_s) <= 0 or cluster.workers == 1 or eta * L > 1:
            return None
        about = {"gap": gap, "eta": eta, "L": L, "sigma2": sigma2, "delay_s": delay_s, "time_s": time_s}
        second = tau_star(**about).capped
        try:
            third = tau_third_order(**about, m=cluster.workers, hessian_lipschitz=Q, kurtosis=kurtosis, rho=L).integer
        except ValueError:  # prices beyond float64
            return None
        return None if second is None or third is None else (second, third)

    def link(self, level: str = ALL) -> Link:
        """Return a measured link.

        Parameters
        ----------
        level : str, optional
            "all ranks", "inside a node" or "between nodes".

        Raises
        ------
        ValueError
            If it was not measured.
        """
        for timings in self.links:
            if timings.level == level:
                return timings.link()
        measured = ", ".join(timings.level for timings in self.links) or "none, for one process sends nothing"
        raise ValueError(f"no link {level} was measured; got {measured}: give the link to the cluster yourself")

    # -- for a plan --------------------------------------------------------------------------------------
    def law(self) -> Empirical:
        """Return the law of a step's seconds: that of the samples, all ranks together."""
        return Empirical(second for each in self.step_s for second in each)

    def cluster(self, **shape: Any) -> Cluster:
        """Return a cluster of such workers: the measured law of a step, and the measured links where none are given.

        Parameters
        ----------
        **shape
            Fields of ``Cluster``: ``workers``, or ``nodes`` and ``gpus_per_node``, and whatever is to be different.

        Notes
        -----
        The law is that of the samples, all ranks together: its slowest of many more workers than samples is too fast.
        Where the links are the measured ones, so are the sums that a group makes at once.
        """
        steps = {"compute": self.law(), "backward_share": self.backward_share()}
        return cluster_of(shape, steps, self.link, self.sums_at_once)

    def codecs(self) -> dict[str, Codec]:
        """Return what ``rd.plan(codec=)`` takes."""
        return {trial.operator: trial.codec for trial in self.operators}

    def with_codecs(self, codecs: Codec | Mapping[str, Codec]) -> Pilot:
        """Return the pilot with other seconds of coding, such as those of a GPU; whole averagings are then computed.

        Parameters
        ----------
        codecs : Codec or mapping of str to Codec
            One for all operators, or by specification; operators that are not named keep the measured one.

        Raises
        ------
        ValueError
            For an operator that the pilot has not tried.
        """
        measured = self.codecs()
        named = dict.fromkeys(measured, codecs) if isinstance(codecs, Codec) else codecs
        if unknown := sorted(named.keys() - measured.keys()):
            raise ValueError(
                f"codec must name operators that the pilot has tried; got {', '.join(unknown)}: take some of "
                f"{', '.join(measured)}"
            )
        trials = tuple(replace(trial, codec=named.get(trial.operator, trial.codec)) for trial in self.operators)
        return replace(self, operators=trials, exchanges=())

    def predict(
        self,
        cluster: Cluster,
        *,
        operator: str | Operator | None = None,
        exchange: str = "gather",
        tau: Number = 1,
        overlap: bool = False,
        parts: Number = 1,
        in_flight: Number | None = None,
        buckets: Number = 1,
        level: float = LEVEL,
        steps: int | None = None,
    ) -> Prediction:
        """Predict seconds and progress of a step on a cluster, against synchronous uncompressed training on it.

        Parameters
        ----------
        cluster : Cluster
            Workers and links, such as ``pilot.cluster(workers=64)``; each worker has a batch as long as the pilot's.
        operator : str or Operator or None, optional
            One that the pilot has tried; None sends binary32, summed on its way.
        exchange : {"gather", "two_shot", "node_gather", "node_two_shot"}, optional
            How compressed messages travel.
        tau : int, optional
            Local steps between two averages, at most as many as the pilot has looked at.
        overlap : bool, optional
            Whether averages travel while the workers go on.
        parts : int, optional
            Fragments of the model, sent one after the other, every tau/parts steps; with overlap.
        in_flight : int or None, optional
            Steps made while a message travels; None: all tau/parts between two messages.  With overlap.
        buckets : int, optional
            Messages of a gradient, all but the last sent during the backward pass; at tau = 1, without overlap.
        level : float, optional
            Confidence of the intervals, 0 < level < 1.
        steps : int or None, optional
            Synchronous steps to the loss, by which what arrives late once is shared out; None leaves it out.

        Raises
        ------
        ValueError
            For bad arguments, an operator that was not tried, and a pilot without falls and bends.

        Notes
        -----
        The same learning rate on both sides; synchronous training sends its gradient during the backward pass where
        that is faster.  ``docs/concepts/prediction.md`` derives the model; what it leaves out is said in ``unknown``,
        and no interval covers it.
        """
        rhythm = rhythm_of(tau=tau, overlap=overlap, parts=parts, in_flight=in_flight, buckets=buckets)
        predictor = self.predictor(cluster, level, steps)
        sent = None if operator is None else self.sent(operator, level)
        return predictor.predict(sent, exchange, rhythm)

    def predictor(
        self, cluster: Cluster, level: float = LEVEL, steps: int | None = None, *, baseline: Rhythm | None = None
    ) -> Predictor:
        """Return what predicts any choice on a cluster.

        Parameters
        ----------
        cluster : Cluster
            Workers and links.
        level : float, optional
            Confidence of the intervals, 0 < level < 1.
        steps : int or None, optional
            Synchronous steps to the loss.
        baseline : Rhythm or None, optional
            When synchronous training averages; None: waiting, or in DistributedDataParallel's buckets during the
            backward pass if that is faster.

        Raises
        ------
        ValueError
            For no cluster, another level, and a pilot without falls and bends.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must satisfy 0 < level < 1; got {level}: 0.95 is usual")
        if not (self.falls and self.bends):
            raise ValueError("a prediction needs what a path fell and bent, which this pilot lacks: make a new pilot")
        moments = len(self.survival)
        energies = np.array(self.small_norms2[:moments])[:, None]
        drops = energies * (1 - np.array(self.survival))
        gradient2 = gradient2_of(self.small_norms2, self.large_norms2, moments)
        path = LocalPath(self.taus, np.array(self.falls), np.array(self.bends), drops, gradient2, level)
        timed = timed_on(checked_cluster(cluster), self.exchanges, self.ranks, self.link)
        clock = StepSeconds(self.step(part_of(level)), cluster, self.d, level, timed, baseline)
        another = (RECORDED.format(training=self.recorded),) if self.recorded else ()
        return Predictor(path, clock, self.rounds, steps or self.steps or None, another)

    def then(self, later: Pilot) -> Pilot:
        """Return this pilot with the trial rounds of a later one beside its own, each for an equal part of a training.

        Parameters
        ----------
        later : Pilot
            Of the same training at a later moment, with the same choices.

        Raises
        ------
        ValueError
            Where one of them has no trial rounds, or not the same.
        """
        if self.rounds is None or later.rounds is None:
            raise ValueError("a later pilot adds its trial rounds; got a pilot without: make both with rounds >= 2")
        return replace(self, rounds=self.rounds.then(later.rounds), passes=self.passes + later.passes)

    def sent(self, operator: str | Operator, level: float = LEVEL) -> Sent:
        """Return messages of an operator as they were measured.

        Parameters
        ----------
        operator : str or Operator
            One that the pilot has tried.
        level : float, optional
            Confidence of a prediction's intervals, of which its error's is a part.

        Raises
        ------
        ValueError
            For any other.
        """
        from operators import specification

        name = specification(operator_of(operator))
        for trial in self.operators:
            if trial.operator == name:
                bits, residual = sum(trial.bits) / len(trial.bits), max(trial.residuals, default=None)
                return Sent(name, mean_estimate(trial.nmse, part_of(level), lower=0.0), bits, residual, trial.codec)
        tried = ", ".join(trial.operator for trial in self.operators) or "none"
        raise ValueError(
            f"operator must be one that the pilot has tried; got {name}, tried: {tried}: make a pilot with it"
        )

    def repeated(self, times: int) -> Pilot:
        """Return the pilot that would have seen the same moments so often: how intervals shrink with more moments.

        Parameters
        ----------
        times : int
            How often, >= 1.
        """
        by_rank = len(self.survival)
        rows: dict[str, Any] = {name: getattr(self, name) * times for name in ("survival", "secants", "falls", "bends")}
        norms: dict[str, Any] = {
            name: tuple(np.tile(np.reshape(getattr(self, name), (-1, by_rank)), times).ravel().tolist())
            for name in ("small_norms2", "large_norms2")
        }
        trials = tuple(replace(trial, bits=trial.bits * times, nmse=trial.nmse * times) for trial in self.operators)
        tried = None if self.rounds is None else self.rounds.repeated(times)
        return replace(self, operators=trials, rounds=tried, **rows, **norms)

    def answer(self) -> Answer:
        """Return what was measured: steps, noise, gradients, links and operators."""
        rows = []
        for trial in self.operators:
            bits, nmse = (sum(each) / len(each) for each in (trial.bits, trial.nmse))
            residual = f"{max(trial.residuals):.3g}" if trial.residuals else ""
            seconds = (trial.codec.encode_s_per_coordinate, trial.codec.decode_s_per_coordinate)
            coded = (f"{each * 1e9:.3g}" for each in seconds)
            rows.append((trial.operator, f"{bits:.4g}", f"{nmse:.4g}", residual, *coded))
        noise, step = self.noise(), self.step()
        left = [f"{kept.value:.3f} after {tau}" for tau, kept in zip(self.taus, self.survives(), strict=True)]
        facts = {
            "a step": self.uncertain_step(),
            "noise scale": f"{_estimated(noise.scale)} batches: variance of a gradient over its squared mean",
            "gradient left": f"{', '.join(left[:1] + left[1:][-1:])} local steps (same batch)",
            "curvature": f"at least {self.curvature():.4g} for the losses of single batches, on the path",
            "machine": f"{self.device}, {self.threads} threads, {self.ranks} ranks",
            "pilot": cost_text(self.passes, self.steps),
            "memory": f"{self.memory_bytes / 2**20:.0f} MiB",
            "third order": self._third_order_text(),
        }
        facts |= {f"link {timings.level}"[:LABEL]: _link_text(timings) for timings in self.links}
        columns = ("compressor", "bits", "NMSE", "residual", "encode [ns]", "decode [ns]")
        note = "per coordinate; residual: largest that error feedback carries, over the gradient's norm"
        return Answer(
            f"A step takes {_estimated(step)} s; {self.d} trained parameters.",
            facts,
            (Table(columns, tuple(rows), note=note),),
            follow_up="ratedist plan --pilot FILE --workers 64",
            evidence={"gradient left": left},
        )

    def _third_order_text(self) -> str:
        Q, kurtosis = self.hessian_lipschitz(), self.kurtosis()
        if Q is None:
            return ""
        noise = "" if kurtosis is None else f", kurtosis of the noise {kurtosis:.3g}"
        return f"estimates on batches, no bounds: Hessian {Q:.3g}-Lipschitz{noise}"

    def to_frame(self) -> DataFrame:
        """Return a row for each operator and gradient: bits per coordinate, and nmse."""
        return frame(
            [
                {"operator": trial.operator, "moment": moment, "bits": bits, "nmse": nmse}
                for trial in self.operators
                for moment, (bits, nmse) in enumerate(zip(trial.bits, trial.nmse, strict=True))
            ]
        )

    # -- file --------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stated: Any, *, where: str = "the pilot") -> Pilot:
        """Return the pilot that a record states, whose numbers fit together.

        Parameters
        ----------
        stated : object
            Plain values, as ``to_dict`` returns them.
        where : str, optional
            Where they come from, for the error.

        Raises
        ------
        ValueError
            For another version, for what is no pilot, and for numbers that no pilot measures.
        """
        pilot = made_of(stated, where, cls)
        _check(pilot)
        return pilot

    @classmethod
    def read(cls, path: str | Path) -> Pilot:
        """Return the pilot in a file.

        Parameters
        ----------
        path : str or Path
            That ``gpu_validation.pilot`` has written; or "resnet20" or "transformer", recorded on one processor core.

        Raises
        ------
        ValueError
            For a file that is missing, too large, no JSON, or no pilot.
        """
        return cls.from_dict(stated_in(path), where=str(path))


def _estimated(estimate: Estimate) -> str:
    ends = f"{estimate.interval.lo:.4g} to {estimate.interval.hi:.4g}"
    return f"{estimate.value:.4g} ({estimate.level:.0%}: {ends})"


def _link_text(timings: LinkTimings) -> str:
    try:
        return f"{timings.link().in_words()}, {timings.ranks} ranks"
    except ValueError as error:
        return str(error)


def cost_text(passes: int, steps: int) -> str:
    """Return what a pilot cost a worker, with its share of the training's steps; "" if the cost is not known.

    Parameters
    ----------
    passes : int
        Forward and backward passes.
    steps : int
        Of the whole training; 0 if they are not known.
    """
    share = f"{passes / steps:.1%} of the training's {steps:,} steps" if steps else f"a tenth of {10 * passes:,} steps"
    return f"{passes:,} forward and backward passes per worker, {share}" if passes else ""


# -- checks of a pilot from outside --------------------------------------------------------------------

MOST_OPERATORS = 32
MOST_MOMENTS = 4096
MOST_RANKS = 1024
MOST_TAUS = 32
MOST_TAU = 4096
MOST_D = 10**12
LARGEST, SMALLEST = 1e30, 1e-30  # products of squares of what is not 0 stay finite
MOST_CHARACTERS = 64
OPTIONAL = ("falls", "bends")  # without them a prediction is refused in its own words


def recorded_pilot(name: str) -> Pilot:
    """Return a pilot that ratedist carries; a path is refused.

    Parameters
    ----------
    name : str
        Its name.

    Raises
    ------
    ValueError
        For another name.
    """
    names = recorded_pilots()
    if name not in names:
        raise ValueError(f"pilot must be a record or one of {', '.join(names)}; got {name[:MOST_CHARACTERS]!r}")
    return Pilot.read(name)


def _check(pilot: Pilot) -> None:
    """Refuse numbers that no pilot measures."""
    whole = {"d": (pilot.d, MOST_D), "ranks": (pilot.ranks, MOST_RANKS), "threads": (pilot.threads, MOST_D)}
    for name, (value, most) in whole.items():
        _require(_is_whole(value) and 1 <= value <= most, name, f"an integer from 1 to {most}", value)
    _require(isinstance(pilot.device, str), "device", "a text", pilot.device)
    _require(_is_number(pilot.memory_bytes) and pilot.memory_bytes >= 0, "memory_bytes", "bytes", pilot.memory_bytes)
    _require(len(pilot.step_s) == pilot.ranks, "step_s", f"a row for each of {pilot.ranks} ranks", len(pilot.step_s))
    for row in pilot.step_s:
        _check_numbers("step_s", row, least=0.0, count=len(pilot.step_s[0]))
        _require(sum(row) > 0, "step_s", "seconds above 0", list(row))
    if pilot.backward_s:
        _require(len(pilot.backward_s) == pilot.ranks, "backward_s", f"{pilot.ranks} rows", len(pilot.backward_s))
    for row in pilot.backward_s:
        _check_numbers("backward_s", row, least=0.0, count=len(pilot.step_s[0]))
    once = pilot.sums_at_once
    _require(_is_whole(once) and 1 <= once <= MOST_RANKS, "sums_at_once", f"an integer from 1 to {MOST_RANKS}", once)
    for name in ("passes", "steps"):
        value = getattr(pilot, name)
        _require(_is_whole(value) and 0 <= value <= MOST_D, name, f"an integer from 0 to {MOST_D}", value)
    for name in LATER:
        _check_numbers(name, getattr(pilot, name), least=0.0)
    _check_numbers("learning_rate", (pilot.learning_rate,), least=0.0)
    _check_path(pilot)
    _check_operators(pilot)
    _require(isinstance(pilot.recorded, str), "recorded", "a text", pilot.recorded)
    if pilot.rounds is not None:
        _check_rounds(pilot.rounds)
    for timed in pilot.exchanges:
        _require(isinstance(timed.operator, str), "exchanges", "operators by specification", timed.operator)
        _require(isinstance(timed.exchange, str), "exchanges", "exchanges by name", timed.exchange)
        _check_numbers("exchanges", timed.seconds, least=0.0)
        _require(len(timed.seconds) >= 2, "exchanges", "two seconds or more", len(timed.seconds))
    for timings in pilot.links:
        _require(isinstance(timings.level, str), "links", "levels by name", timings.level)
        _require(_is_whole(timings.ranks) and timings.ranks >= 2, "links", "two ranks or more", timings.ranks)
        _check_numbers("links", timings.payload_bytes, least=0.0)
        _check_numbers("links", timings.seconds, least=0.0, count=len(timings.payload_bytes))


def _check_path(pilot: Pilot) -> None:
    taus, moments = pilot.taus, len(pilot.survival)
    _require(
        1 <= len(taus) <= MOST_TAUS
        and all(_is_whole(tau) and 1 <= tau <= MOST_TAU for tau in taus)
        and all(before < after for before, after in pairwise(taus)),
        "taus",
        f"up to {MOST_TAUS} rising integers from 1 to {MOST_TAU}",
        list(taus),
    )
    _require(2 <= moments <= MOST_MOMENTS, "survival", f"2 to {MOST_MOMENTS} moments", moments)
    for name in ("survival", "secants", "falls", "bends"):
        rows = getattr(pilot, name)
        if name in OPTIONAL and not rows:
            continue
        _require(len(rows) == moments, name, f"a row for each of {moments} moments", len(rows))
        for row in rows:
            _check_numbers(name, row, count=len(taus))
    expected = pilot.ranks * moments
    for name in ("small_norms2", "large_norms2"):
        _check_numbers(name, getattr(pilot, name), least=0.0, count=expected)
    _require(min(pilot.small_norms2) > 0, "small_norms2", "squares above 0", min(pilot.small_norms2))
    _require(bool(pilot.losses), "losses", "at least one number", list(pilot.losses))
    _check_numbers("losses", pilot.losses)


def _check_rounds(trials: RoundTrials) -> None:
    for name, value, least in (("workers", trials.workers, 2), ("steps", trials.steps, 1)):
        _require(_is_whole(value) and least <= value <= MOST_TAU, "rounds", f"{name} from {least} to {MOST_TAU}", value)
    choices = [(row.operator, row.tau) for row in trials.rows]
    _require(all(isinstance(operator, str) for operator, _ in choices), "rounds", "operators by specification", choices)
    _require(all(_is_whole(tau) and 1 <= tau <= MOST_TAU for _, tau in choices), "rounds", "whole tau", choices)
    _require(len(set(choices)) == len(choices), "rounds", "every choice once", choices)
    _require(SYNCHRONOUS in choices, "rounds", "synchronous uncompressed steps among the choices", choices)
    shape = [len(moments) for moments in trials.rows[0].falls]
    _require(1 <= len(shape) <= MOST_MOMENTS and min(shape, default=0) >= 2, "rounds", "two moments or more", shape)
    for row in trials.rows:
        for rows in (row.falls, *filter(None, (row.owed, row.bits))):
            _require([len(moments) for moments in rows] == shape, "rounds", f"rows of {shape} numbers", rows)
            for moments in rows:
                _check_numbers("rounds", moments, least=0.0 if rows is row.bits else -LARGEST)


def _check_operators(pilot: Pilot) -> None:
    trials = pilot.operators
    _require(len(trials) <= MOST_OPERATORS, "operators", f"at most {MOST_OPERATORS} trials", len(trials))
    for trial in trials:
        _require(isinstance(trial.operator, str), "operators", "specifications", trial.operator)
        _require(isinstance(trial.codec.source, str), "codec", "a source in words", trial.codec.source)
        _check_numbers("bits", trial.bits, least=0.0)
        count = len(trial.bits)
        _require(2 <= count <= MOST_MOMENTS, "bits", f"2 to {MOST_MOMENTS} numbers for each operator", count)
        _check_numbers("nmse", trial.nmse, least=0.0, count=count)
        _check_numbers("residuals", trial.residuals, least=0.0)


def _check_numbers(name: str, values: Sequence[Any], *, least: float = -LARGEST, count: int | None = None) -> None:
    """Refuse what is no list of finite numbers of this length."""
    _require(isinstance(values, tuple), name, "a list of numbers", values)
    if count is not None:
        _require(len(values) == count, name, f"{count} numbers in a row", len(values))
    rule = f"0 or numbers from {SMALLEST:g} to {LARGEST:g}" + (", or below 0 as far" if least else "")
    for value in values:
        fits = _is_number(value) and value >= least and (value == 0 or SMALLEST <= abs(value) <= LARGEST)
        _require(fits, name, rule, value)


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= 2**53
    return isinstance(value, float) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(holds: bool, name: str, rule: str, value: Any) -> None:
    if not holds:
        got = repr(value)[:MOST_CHARACTERS]
        raise ValueError(f"{name} of a pilot must be {rule}; got {got}: give the file as it was written")
