"""What was measured and what follows from it: frozen records, written line by line as they come."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from bounds.claims import Claim, Contractive, NoClaim, Unbiased
from operators import Size


class Verdict(enum.StrEnum):
    """What a comparison says.  The last two never count as HOLDS."""

    HOLDS = "HOLDS"
    VIOLATED = "VIOLATED"
    INCONCLUSIVE = "INCONCLUSIVE"
    OUT_OF_SCOPE = "OUT_OF_SCOPE"


ATOMS = 64  # groups that a sample keeps of its draws

Atom = tuple[float, float, int]


class Evidence(enum.StrEnum):
    """What a verdict is worth.

    INFORMATIVE: a bound wrong by a factor of two would have been noticed.  POWERLESS: it would not.
    STRUCTURAL: measured and bound come from the same code, so that they agree by construction.
    """

    INFORMATIVE = "informative"
    STRUCTURAL = "structural"
    POWERLESS = "without power"


@dataclass(frozen=True)
class Sample:
    """n numbers summed up: mean, standard deviation (n - 1 below), extremes, and groups of equal or close values.

    sd : standard deviation.  low, high : extremes.
    atoms : (smallest, largest, how many) of each group, ascending; what intervals are computed from.
    """

    n: int
    mean: float
    sd: float
    low: float
    high: float
    atoms: tuple[Atom, ...] = ()

    @classmethod
    def of(cls, values: Any) -> Sample:
        """Sum up at least one number."""
        array = np.asarray(values, float)
        sd = float(array.std(ddof=1)) if array.size > 1 else 0.0
        atoms = _grouped(np.sort(array, axis=None))
        return cls(int(array.size), float(array.mean()), sd, float(array.min()), float(array.max()), atoms)

    def clipped(self, ceiling: float) -> Sample:
        """The sample with everything above ``ceiling`` counted as that; mean and sd are those of the groups' tops."""
        if self.high <= ceiling:
            return self
        atoms = tuple((min(low, ceiling), min(high, ceiling), n) for low, high, n in self.atoms)
        tops = np.repeat([high for _, high, _ in atoms], [n for _, _, n in atoms])
        return replace(Sample.of(tops), low=min(self.low, ceiling), atoms=atoms)


def _grouped(ascending: np.ndarray) -> tuple[Atom, ...]:
    """Equal numbers as one group; more than ATOMS of them in cells of one width."""
    values, counts = np.unique(ascending, return_counts=True)
    if values.size > ATOMS and np.isfinite(values).all():
        cells = np.minimum((ATOMS * ((values - values[0]) / (values[-1] - values[0]))).astype(int), ATOMS - 1)
    else:
        cells = np.arange(values.size)
    firsts = np.flatnonzero(np.diff(cells, prepend=-1))
    lasts = np.append(firsts[1:], values.size) - 1
    totals = np.add.reduceat(counts, firsts)
    return tuple((float(values[i]), float(values[j]), int(n)) for i, j, n in zip(firsts, lasts, totals, strict=True))


@dataclass(frozen=True)
class Declared:
    """What the operator promises at this d: its claim and its message length.

    kind : class of the claim; constant : its omega or alpha, None without one; reason : why there is none.
    exact_bits, expected_upper_bits, worst_case_bits : as in ``Size``.
    """

    kind: str
    constant: float | None
    exact_bits: int | None
    expected_upper_bits: float | None
    worst_case_bits: float | None
    reason: str = ""

    @classmethod
    def of(cls, claim: Claim, size: Size) -> Declared:
        """Flatten a claim and a size."""
        constant = {Unbiased: "omega", Contractive: "alpha"}
        value = next((getattr(claim, name) for kind, name in constant.items() if isinstance(claim, kind)), None)
        reason = claim.reason if isinstance(claim, NoClaim) else ""
        return cls(type(claim).__name__, value, size.exact, size.expected_upper, size.worst_case, reason)


@dataclass(frozen=True)
class Compression:
    """Messages of one operator on one kind of input.

    bits : message lengths.  ratio : squared error over squared norm, one number a message.
    error_per_coordinate : squared error / d (for inputs of unit variance this is the distortion).
    source : kind of input.  declared : what the operator promises there.
    """

    source: str
    d: int
    declared: Declared
    bits: Sample
    ratio: Sample
    error_per_coordinate: Sample


@dataclass(frozen=True)
class Traffic:
    """Bytes of all ranks together, in three columns that are never mixed.

    codec_bits : sum of the messages' lengths, each counted once.
    payload_bytes : handed to the transport, headers and receivers counted; predicted_payload_bytes likewise.
    interface_bytes : the device's own counter over the same period, by ``interface_method``.
    stream_bytes : put into TCP connections while the payload was handed over, without its headers; None where the
    system does not tell, or another transport carries the payload.  messages : the most that it can have been cut into.
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

    round_s : duration of every round on rank 0.  step_s : of every local step of every rank, padding included.
    delay_s : of one averaging, timed behind a fence, so that no wait for stragglers is in it; an imposed delay is.
    wanted_step_s : to which local steps were padded; 0 if they were not.
    """

    round_s: tuple[float, ...]
    step_s: tuple[float, ...]
    delay_s: Sample
    wanted_step_s: float = 0.0


@dataclass(frozen=True)
class Curve:
    """Loss of the averaged model after every round of the first seed, against time and against bits sent.

    seconds, codec_bits : since the start, one a round.  loss : F there.
    """

    seconds: tuple[float, ...]
    codec_bits: tuple[int, ...]
    loss: tuple[float, ...]


@dataclass(frozen=True)
class Probe:
    """One operator on synthetic input, outside training.

    compression : what was measured.  kind : of the record.
    """

    operator: str
    compression: Compression
    kind: str = "probe"


@dataclass(frozen=True)
class Training:
    """One cell: an operator and a tau on one workload, over several seeds.

    gradient_norm2 : per seed, the average over all steps of |grad F|^2 at the averaged model.
    virtual : how many seeds, the last ones, were run by virtual workers; the others by real processes.
    local_gradient_norm2 : per seed, the same at the workers' own models, averaged over them; empty if not taken.
    apart : largest difference between real processes and virtual workers over all steps of the real seeds, None if
    there were no virtual ones; compared : numbers in which they could differ.
    problem : the workload's fields, where it is a formula.
    parameters : numbers of the theorems and of the workload.
    accuracy : per real seed, held-out accuracy of the final averaged model, None where nothing is held out.
    data : the workload's ``Description``, which says whether the data are synthetic.
    steps, processes : local steps of each rank, ranks.  exact_constants : whether the theorem may judge, else
    inexact_reason says why not.  final_loss : per seed.  compression, traffic, timing, curve : what was measured.
    kind : of the record.
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


@dataclass(frozen=True)
class Comparison:
    """One measured number against one bound.

    interval : ends around the measurement, or the number twice if exact.  The end that would accuse (the lower one of
    an upper bound, the upper one of a lower bound, both of an equality) misses with the run's level for this row, the
    other one with 5 %.
    looseness : bound / measured (upper) or measured / bound (lower).  decides : whether a VIOLATED counts.
    accuses_at : the value of a lower bound at the end of its own interval that can accuse; None if it is ``bound``.
    structural : whether both numbers come from the same code.
    operator, workload, tau : what ran; quantity, unit : what was measured; n : how often; theorem : the bound's name;
    side : "upper", "lower" or "tight"; verdict, reason : the outcome, and why the row decides nothing, if so.
    """

    operator: str
    quantity: str
    measured: float
    interval: tuple[float, float]
    bound: float | None
    side: str
    verdict: Verdict
    reason: str = ""
    theorem: str = ""
    workload: str = ""
    tau: int | None = None
    n: int = 1
    decides: bool = True
    unit: str = ""
    structural: bool = False
    accuses_at: float | None = None

    @property
    def noticed(self) -> tuple[float, float] | None:
        """(below, above): times a factor under the first or over the second, the bound would have been VIOLATED.

        None where there is no verdict, or no factor changes the bound.  (0, inf): no factor would have been noticed.
        """
        if self.bound is None or not self.bound > 0 or self.verdict is Verdict.OUT_OF_SCOPE:
            return None
        bound = self.bound if self.accuses_at is None else self.accuses_at
        if not bound > 0:
            return 0.0, math.inf
        below = max(0.0, self.interval[0] / bound) if self.side != "lower" else 0.0
        above = max(0.0, self.interval[1] / bound) if self.side != "upper" else math.inf
        return below, above

    @property
    def evidence(self) -> Evidence | None:
        """What the verdict is worth, None where there is none."""
        if self.verdict is Verdict.OUT_OF_SCOPE:
            return None
        if self.structural:
            return Evidence.STRUCTURAL
        if self.noticed is None:  # a bound of 0, or a fact: whatever differs is noticed
            return Evidence.INFORMATIVE if self.interval[0] == self.interval[1] else Evidence.POWERLESS
        below, above = self.noticed
        return Evidence.INFORMATIVE if below >= 0.5 or above <= 2 else Evidence.POWERLESS

    def line(self) -> dict[str, Any]:
        """The fields and what follows from them, as a file keeps them."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return fields | {"looseness": self.looseness, "noticed": self.noticed, "evidence": self.evidence}

    @property
    def looseness(self) -> float | None:
        """How far the bound is from the measurement; 1 is tight, None if undefined."""
        if self.bound is None or not self.measured or not self.bound:
            return None
        return self.bound / self.measured if self.side == "upper" else self.measured / self.bound


@dataclass(frozen=True)
class Environment:
    """Under what circumstances the numbers were taken.

    preset : the experiment.  commit : of the checkout, marked if dirty.  device, processes, backend : where it ran.
    versions : package -> version.  kind : of the record.  seed : of the run.
    """

    preset: str
    commit: str
    device: str
    processes: int
    backend: str
    versions: dict[str, str]
    kind: str = "environment"
    seed: int = 0

    @classmethod
    def here(cls, preset: str, processes: int, backend: str, seed: int = 0) -> Environment:
        """Describe this machine and this checkout."""
        names = ("ratedist", "torch", "numpy", "numba", "sympy")
        versions = {"python": platform.python_version(), **{name: version(name) for name in names}}
        device = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
        return cls(preset, _commit(), device, processes, backend, versions, seed=seed)


def _commit() -> str:
    try:
        here = Path(__file__).parent
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()


@dataclass
class JsonLines:
    """An append-only file of records; every line is on the disk before the next one is begun.

    mode : "w" begins anew, "a" goes on at the end of a file that is there.
    path : of the file.
    """

    path: Path
    mode: Literal["w", "a"] = "w"
    _file: IO[str] | None = field(default=None, repr=False)

    def __enter__(self) -> JsonLines:
        self._file = self.path.open(self.mode, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # of what could not be written, which was told when it was tried
                self._file.close()

    def write(self, record: Any) -> None:
        """Append one record.  Raises ValueError outside of a with statement, OSError with the file's name."""
        if self._file is None:
            raise ValueError("open the file with a with statement before writing to it")
        try:
            self._file.write(json.dumps(plain(record), allow_nan=False) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error


def plain(value: Any) -> Any:
    """A record as JSON values; infinities and nan become strings, so that nothing is lost."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


class DamagedRecords(ValueError):  # noqa: N818  a name users are told to catch
    """A line of a file of records is none."""


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file as dictionaries; a last line cut short by a crash is left out.

    Raises DamagedRecords, a ValueError with file and line, for any other line that is none.
    """
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("it is no JSON object")
        except ValueError as error:  # of JSON, or of the encoding
            if number == len(lines):
                return
            raise DamagedRecords(
                f"{path}, line {number}, is not a record ({error}): remove the line, and what it held is measured again"
            ) from error
        if line.endswith(b"\n"):
            yield record


def write_atomically(path: Path, text: str) -> None:
    """Replace a file so that a reader sees the old one or the new one, never a part.

    Raises OSError, with the file's name, where it cannot be written; the old one stays.
    """
    temporary = path.with_suffix(path.suffix + ".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_comparisons(path: Path, comparisons: Iterable[Comparison]) -> None:
    """One line a comparison, with what follows from it; the file is there whole or not at all."""
    lines = (json.dumps(plain(comparison.line()), allow_nan=False) for comparison in comparisons)
    write_atomically(path, "".join(line + "\n" for line in lines))
