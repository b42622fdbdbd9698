"""What a grid combines, and what a unit of it records."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from operators import Operator

from ...records.compression import Compression, Sample
from ...workloads import Workload


@dataclass(frozen=True)
class Cells:
    """The training cells of one workload: every operator at every tau.

    Parameters
    ----------
    workload : Workload
        What is trained, at its own learning rate.
    taus : tuple of int
        Local steps between averagings, one cell each.
    steps : int
        Local steps K of a run, a multiple of every tau.
    seeds : tuple of int
        One run of real processes each; the first is timed with local steps padded to ``step_s`` seconds and averagings
        made ``delay_s`` longer.
    step_s : float, seconds
        Mean time of one local step.
    delay_s : float, seconds, optional
        Time of one averaging.
    virtual : int, optional
        Further seeds, run by simulated workers where a theorem covers the operator; models without buffers.
    operators : tuple of Operator or None, optional
        In place of the preset's.

    Raises
    ------
    ValueError
        If a tau does not divide the steps.
    """

    workload: Workload
    taus: tuple[int, ...]
    steps: int
    seeds: tuple[int, ...]
    step_s: float
    delay_s: float = 0.0
    virtual: int = 0
    operators: tuple[Operator, ...] | None = None

    @property
    def virtual_seeds(self) -> tuple[int, ...]:
        """Other ones than the real ones, which follow from the first of them."""
        candidates = (self.seeds[0] + i for i in count(1))
        return tuple(islice((seed for seed in candidates if seed not in self.seeds), self.virtual))

    def __post_init__(self) -> None:
        for tau in self.taus:
            if self.steps % tau:
                raise ValueError(f"steps must be a multiple of every tau; got steps = {self.steps}, tau = {tau}")


@dataclass(frozen=True)
class Design:
    """What an experiment combines.

    Parameters
    ----------
    name : str
        As ``ratedist run`` takes it.
    description : str
        One sentence, as ``ratedist studies`` shows it.
    operators : tuple of Operator
        Probed, and trained with in every cell that names no others.
    cells : tuple of Cells
        Workloads with their periods, steps and seeds.
    processes : int, optional
        Ranks, one operating system process each.
    probe_d : int, optional
        Dimension of the synthetic vectors.
    probe_messages : int, optional
        How many of them each rank encodes.
    false_alarm : float, optional
        Chance that the whole run accuses a true claim.
    hang_timeout_s : float, seconds, optional
        Hang detection.
    minutes : float, optional
        Stated duration on two cores.
    """

    name: str
    description: str = field(repr=False)
    operators: tuple[Operator, ...]
    cells: tuple[Cells, ...]
    processes: int = 4
    probe_d: int = 1000
    probe_messages: int = 50
    false_alarm: float = 1e-4
    hang_timeout_s: float = 60.0
    minutes: float = 3.0

    def trained(self, cells: Cells) -> tuple[Operator, ...]:
        """Return the operators of some cells.

        Parameters
        ----------
        cells : Cells
            Cells of this experiment.
        """
        return self.operators if cells.operators is None else cells.operators


SOURCES = ("gaussian", "flat")  # synthetic inputs of the probes: isotropic Gaussian, all entries equal


@dataclass(frozen=True)
class Traffic:
    """Bytes of all ranks together, in three columns that are never mixed.

    Parameters
    ----------
    codec_bits : int, bits
        sum of the messages' lengths, each counted once.
    payload_bytes : int, bytes
        Handed to the transport, headers and receivers counted; predicted_payload_bytes counts the same.
    predicted_payload_bytes : int, bytes
        What the theory of the topology says.
    interface_bytes : int or None, bytes
        The device's own counter over the same period, by ``interface_method``.
    interface_method : str
        How the interface's bytes were counted.
    stream_bytes : int or None, bytes, optional
        Put into TCP connections while the payload was handed over, without its headers; None where the system does not
        tell, or another transport carries the payload.
    messages : int, optional
        The most that it can have been cut into.
    """

    codec_bits: int
    payload_bytes: int
    predicted_payload_bytes: int
    interface_bytes: int | None
    interface_method: str
    stream_bytes: int | None = None
    messages: int = 0


@dataclass(frozen=True)
class Timing:
    """Seconds per local step, measured and predicted.

    Parameters
    ----------
    round_s : tuple of float, seconds
        Duration of every round on rank 0.
    step_s : tuple of float, seconds
        Of every local step of every rank, padding included.
    delay_s : Sample, seconds
        Of one averaging, timed behind a fence, so that no wait for stragglers is in it; an imposed delay is.
    wanted_step_s : float, seconds, optional
        To which local steps were padded; 0 if they were not.
    """

    round_s: tuple[float, ...]
    step_s: tuple[float, ...]
    delay_s: Sample
    wanted_step_s: float = 0.0


@dataclass(frozen=True)
class Curve:
    """Loss of the averaged model after every round of the first seed, against time and against bits sent.

    Parameters
    ----------
    seconds : tuple of float
        Since the start, one a round.
    codec_bits : tuple of int, bits
        Since the start, one a round.
    loss : tuple of float
        F there.
    """

    seconds: tuple[float, ...]
    codec_bits: tuple[int, ...]
    loss: tuple[float, ...]


@dataclass(frozen=True)
class Probe:
    """One operator on synthetic input, outside training.

    Parameters
    ----------
    operator : str
        Specification of the compressor, as ``operators.parse`` reads it.
    compression : Compression
        What was measured.
    kind : str, optional
        Which of the two records of a grid it is.
    """

    operator: str
    compression: Compression
    kind: str = "probe"


@dataclass(frozen=True)
class Training:
    """One cell: an operator and a tau on one workload, over several seeds.

    Parameters
    ----------
    workload : str
        Name of what is trained.
    operator : str
        Specification of the compressor, as ``operators.parse`` reads it.
    tau : int
        Local steps between two averagings.
    processes : int
        Real ranks, m.
    steps : int
        Local steps of each rank.
    seeds : tuple of int
        One course for each seed.
    parameters : dict of str to float
        Numbers of the theorems and of the workload.
    exact_constants : bool
        Whether the theorem may judge, else inexact_reason says why not.
    inexact_reason : str
        Why the cell need not be what the theory describes; empty if it is.
    gradient_norm2 : tuple of float
        Per seed, the average over all steps of ``|grad F|^2`` at the averaged model.
    final_loss : tuple of float
        Per seed.
    compression : Compression
        Bits and errors of its messages.
    traffic : Traffic
        Bytes of all its averagings.
    timing : Timing
        Seconds of the first real seed.
    curve : Curve
        Losses of the first real seed.
    accuracy : tuple of float or None, optional
        Per real seed, held-out accuracy of the final averaged model, None where nothing is held out.
    data : dict, optional
        The workload's ``Description``, which says whether the data are synthetic.
    virtual : int, optional
        How many seeds, the last ones, were run by simulated workers; the others by real processes.
    local_gradient_norm2 : tuple of float, optional
        Per seed, the same at the workers' own models, averaged over them; empty if not taken.
    apart : float or None, optional
        Largest difference between real processes and simulated workers over all steps of the real seeds, None if there
        were no virtual ones.
    compared : int, optional
        Numbers in which they could differ.
    problem : dict, optional
        The workload's fields, where it is a formula.
    kind : str, optional
        Which of the two records of a grid it is.
    """

    workload: str
    operator: str
    tau: int
    processes: int
    steps: int
    seeds: tuple[int, ...]
    parameters: dict[str, float]
    exact_constants: bool
    inexact_reason: str
    gradient_norm2: tuple[float, ...]
    final_loss: tuple[float, ...]
    compression: Compression
    traffic: Traffic
    timing: Timing
    curve: Curve
    accuracy: tuple[float | None, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    virtual: int = 0
    local_gradient_norm2: tuple[float, ...] = ()
    apart: float | None = None
    compared: int = 0
    problem: dict[str, Any] = field(default_factory=dict)
    kind: str = "training"
