"""What a grid combines: operators, workloads and periods, all fixed before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count, islice

from operators import Operator

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
        """Return the operators of some cells."""
        return self.operators if cells.operators is None else cells.operators


SOURCES = ("gaussian", "flat")  # synthetic inputs of the probes: isotropic Gaussian, all entries equal
