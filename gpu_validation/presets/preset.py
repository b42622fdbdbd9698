"""A named experiment: everything that is fixed before it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count, islice

from operators import Operator

from ..seeds import RECORDED, derived, require
from ..workloads import Workload


@dataclass(frozen=True)
class Cells:
    """The training cells of one workload: every operator at every tau.

    steps : local steps K of a run, a multiple of every tau.  seeds : one run of real processes each; the first is
    timed with local steps padded to ``step_s`` seconds and averagings made ``delay_s`` longer.
    virtual : further seeds, run by virtual workers where a theorem covers the operator; models without buffers.
    taus : local steps between averagings, one cell each.  operators : in place of the preset's.
    Raises ValueError if a tau does not divide the steps.
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
class Preset:
    """An experiment.

    probe_d, probe_messages : dimension and number of the synthetic vectors, per rank.
    false_alarm : chance that the whole run accuses a true claim.  silence_s : hang detection.
    minutes : stated duration on two cores.  seed : of the run; under the recorded one every stream has its own number.
    name, description : as ``gpu-validation list`` shows them.  operators, cells : what is combined.
    processes : ranks, one operating system process each.
    """

    name: str
    description: str
    operators: tuple[Operator, ...]
    cells: tuple[Cells, ...]
    processes: int = 4
    probe_d: int = 1000
    probe_messages: int = 50
    false_alarm: float = 1e-4
    silence_s: float = 60.0
    minutes: float = 3.0
    seed: int = RECORDED

    def seeded(self, seed: int) -> Preset:
        """The same experiment with other random numbers throughout.  Raises ValueError unless 0 <= seed < 2^32."""
        cells = tuple(replace(c, seeds=tuple(derived(seed, own) for own in c.seeds)) for c in self.cells)
        return replace(self, seed=require(seed), cells=cells)

    def trained(self, cells: Cells) -> tuple[Operator, ...]:
        """The operators of some cells."""
        return self.operators if cells.operators is None else cells.operators

    @property
    def units(self) -> int:
        """Number of records a complete run produces."""
        return len(self.operators) * len(SOURCES) + sum(len(self.trained(c)) * len(c.taus) for c in self.cells)


SOURCES = ("gaussian", "flat")  # synthetic inputs of the probes: isotropic Gaussian, all entries equal
