"""AdaComm on images of CIFAR's form: VGG-16 and ResNet-50 where there is a GPU, ResNet-20 on the CPU.

All m workers are virtual ones on one device, bit for bit the run of m processes; the clock is the runtime model's, in
units of a local step: Y = 1, and an averaging takes D, about 4 for VGG-16 and 0.9 for ResNet-50 as published (Wang &
Joshi, arXiv:1810.08313).  What the device itself needs for a worker's step is recorded beside it.

Every run is cut into pieces of the simulated budget, each a unit with a checkpoint at its end, so that a study of any
length can be carried out in calls of any length.  The images are synthetic unless CIFAR_ARCHIVE names an archive.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch

from bounds.runtime import Constant, RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm, Fixed, Schedule
from operators import Key

from ..averaging.pacing.clock import SimulatedClock
from ..averaging.settings import Pacing
from ..averaging.simulated import SimulatedWorkers
from ..judging.comparisons import unjudged_row
from ..processes.launch import RunFailed
from ..workloads import Cifar, ResNet20, ResNet50, SyntheticImages, Vgg16
from ..workloads.data import Source
from ..workloads.network import Network
from .adacomm import CONSTANT, DECAYED, Setting, end_rows, figures, groups, ratio_rows
from .required import Required
from .runs.local_steps import Replica, training_rounds
from .runs.spec import TrainingRun
from .study import Comparison, Figure, Record, Study

ARCHIVE = "CIFAR_ARCHIVE"  # the environment variable
STEP = ShiftedExponential(0.8, 0.2)  # law of a local step, of mean 1
TIMES = 2  # fold of a run's key


@dataclass(frozen=True)
class Track:
    """What is trained on, and for how long.

    Parameters
    ----------
    delay : float
        D in units of Y.
    budget : float
        In units of Y.
    decay : tuple of (int, float)
        (local step, factor of the learning rate) of the decayed runs.
    interval : float
        T_0, in units of Y.
    pieces : int
        Units into which a run is cut, of equal budgets.
    """

    workload: Network
    delay: float
    budget: float
    decay: tuple[tuple[int, float], ...]
    interval: float
    pieces: int


def source(samples: int, held_out: int) -> Source:
    """Return the archive that the environment names, or synthetic images."""
    path = os.environ.get(ARCHIVE)
    return Cifar(path) if path else SyntheticImages(samples=samples, held_out=held_out)


def tracks(*, gpu: bool) -> tuple[tuple[str, Track], ...]:
    """Return the published networks at batch 128 for a GPU, or one that a CPU can train."""
    if not gpu:
        small = ResNet20(source=source(500, 300), batch=16, eta=0.05)
        return (("resnet20", Track(small, 4.0, 1000.0, ((150, 0.1),), interval=60.0, pieces=10)),)
    vgg = Vgg16(source=source(50_000, 10_000), batch=128, eta=0.2, precision="bfloat16", layout="channels_last")
    residual = ResNet50(source=vgg.source, batch=128, eta=0.4, precision="bfloat16", layout="channels_last")
    return (
        ("vgg16", Track(vgg, 4.0, 10_000.0, ((1500, 0.1),), interval=600.0, pieces=10)),
        ("resnet50", Track(residual, 0.9, 4_000.0, ((1500, 0.1),), interval=250.0, pieces=10)),
    )


@dataclass(frozen=True)
class AdaCommCifar(Study):
    """Parameters
    ----------
    tracks : tuple of (str, Track)
        By network.
    tau_0 : int, optional
        Of AdaComm, as published.
    points : int, optional
        Losses of a run; a multiple of the pieces.
    window : float, optional
        Of the smoothing, in shares of the budget.
    folder : Path or None, optional
        Of the checkpoints; set when the study is carried out.
    """

    tracks: tuple[tuple[str, Track], ...]
    m: int = 4
    taus: tuple[int, ...] = (1, 5, 20)
    tau_0: int = 20
    rates: tuple[str, ...] = (CONSTANT,)
    seeds: tuple[int, ...] = (10,)
    points: int = 40
    window: float = 1 / 10
    device: str = "cpu"
    folder: Path | None = field(default=None, repr=False)  # it may move

    name = "adacomm-cifar"
    description = "AdaComm on CIFAR's form: VGG-16 and ResNet-50 on a GPU (an hour a seed), ResNet-20 on the CPU"
    minutes = 15
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the pieces of every run."""
        for seed, (name, track), rate in itertools.product(self.seeds, self.tracks, self.rates):
            for schedule in self.schedules(track, rate):
                yield from (("run", name, rate, seed, schedule, piece) for piece in range(track.pieces))

    def schedules(self, track: Track, rate: str) -> dict[str, Schedule]:
        """Return fixed tau, the synchronous one first, and the paper's rule for the learning rate."""
        gamma = AdaComm(self.tau_0, track.interval, gamma=0.5)
        coupled = replace(gamma, eta_exponent=0.5, cap=5 * self.tau_0)
        fixed = {f"tau = {tau}": Fixed(tau) for tau in self.taus}
        return {**fixed, **({"gamma": gamma} if rate == CONSTANT else {"published": coupled})}

    def with_records(self, records: Sequence[Record], folder: Path) -> AdaCommCifar:
        """Return the study with the folder where the checkpoints lie."""
        return replace(self, folder=folder)

    def measure_run(self, network: str, rate: str, seed: int, schedule: str, piece: int) -> Record:
        """Return one piece of a run, from the checkpoint of the piece before.

        Raises
        ------
        RunFailed
            If that is missing.
        """
        track = dict(self.tracks)[network]
        run = _Run(self, track, self.schedules(track, rate)[schedule], seed, rate)
        name = f"{network}-{rate}-{seed}-{schedule.replace(' ', '')}"
        folder, before = (self.folder or Path()) / "checkpoints" / name, f"{piece - 1}.pt"
        if piece:
            run.load(folder / before)
        record = run.until(track.budget * (piece + 1) / track.pieces, first=not piece)
        run.save(folder / f"{piece}.pt", keep={before})
        return record

    def budget_s(self, name: str) -> float:
        """Return the length of a run of a network, in units of Y."""
        return dict(self.tracks)[name].budget

    def whole(self, records: Sequence[Record]) -> list[tuple[tuple[str, str], Record]]:
        """Return the networks and rates, and records like those of real races, of what is complete."""
        by_unit = dict(self.table(records, "run"))
        whole_runs = []
        for seed, (name, track), rate in itertools.product(self.seeds, self.tracks, self.rates):
            races = []
            for schedule in self.schedules(track, rate):
                units = [(name, rate, seed, schedule, piece) for piece in range(track.pieces)]
                if all(unit in by_unit for unit in units):
                    races.append({"name": schedule, **_joined([by_unit[unit] for unit in units])})
            if len(races) == len(self.schedules(track, rate)):
                whole_runs.append(((name, rate), {"m": self.m, "races": races}))
        return whole_runs

    def required(self, records: Sequence[Record]) -> Counter[Required]:
        """Return the rows that are listed for the form without a GPU."""
        return super().required(records) if self.device == "cpu" else Counter()

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return ratios and accuracies, which no bound covers, and what the device needs for a step."""
        all_groups = groups(self.whole(records), self.budget_s, self.window)
        rows = [row for group in all_groups for row in (*ratio_rows(group), *end_rows(group))]
        for name, _ in self.tracks:
            pieces = [r for _, r in self.table(records, "run", network=name)]
            if pieces:
                about = {"operator": "", "workload": f"{name} on {pieces[0]['device']}", "unit": "s"}
                reason = "recorded to turn units of Y into seconds of this device"
                rows.append(
                    unjudged_row([r["step_s"] for r in pieces], reason, quantity="seconds of a worker's step", **about)
                )
        return rows

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Draw as for real runs, once the runs to compare are complete."""
        all_groups = groups(self.whole(records), self.budget_s, self.window)
        if not all_groups:
            return []
        where = f"{records[0]['images']}; {self.m} simulated workers on {records[0]['device']}; "
        delays = ", ".join(f"{track.delay:g} ({name})" for name, track in self.tracks)
        clock = f"time by the runtime model, in units of Y, the mean of {STEP}, with D = {delays}."
        setting = Setting(self.budget_s, self.window, self.seeds, where + clock, clock="units of Y")
        return figures(all_groups, setting)


class _Run:
    """A simulated race in progress."""

    def __init__(self, study: AdaCommCifar, track: Track, schedule: Schedule, seed: int, rate: str) -> None:
        self.study, self.track = study, track
        self.device = torch.device(study.device)
        decay = track.decay if rate == DECAYED else ()
        run = TrainingRun(track.workload, schedule, None, seed, budget_s=track.budget, decay=decay)
        self.replicas = [Replica.of(run, rank, device=self.device) for rank in range(study.m)]
        self.models = [replica.model for replica in self.replicas]
        optimizers = [replica.optimizer for replica in self.replicas]
        clock = SimulatedClock(RuntimeModel(STEP, Constant(track.delay)), m=study.m, key=Key(seed).fold_in(TIMES))
        self.workers = SimulatedWorkers(self.models, optimizers, schedule=Pacing(schedule, clock=clock))

    def load(self, path: Path) -> None:
        """Raise RunFailed if the file is missing."""
        if not path.exists():
            raise RunFailed(f"the checkpoint {path} is missing: remove this run's lines from the measurements")
        state = torch.load(path, map_location=self.device, weights_only=True)
        for model, model_state in zip(self.models, state["models"], strict=True):
            model.load_state_dict(model_state)
        self.workers.load_state_dict(state["workers"])

    def save(self, path: Path, *, keep: set[str]) -> None:
        """Write the file whole or not at all, then remove the others but those to keep."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        torch.save(
            {"models": [model.state_dict() for model in self.models], "workers": self.workers.state_dict()}, temporary
        )
        os.replace(temporary, path)
        for other in path.parent.glob("*.pt"):
            if other.name not in {path.name, *keep}:
                other.unlink()

    def until(self, end: float, *, first: bool) -> Record:
        """Return local steps up to the first averaging at or after ``end``."""
        track, workers, clock = self.track, self.workers, self.workers.clock
        series: Record = {name: [] for name in ("seconds", "step", "taus", "losses", "accuracies")}
        if first:
            self._look(series, workers.tau)
        taus, worked_s, before = [], 0.0, workers.total_steps
        every, rounds = track.budget / self.study.points, training_rounds(workers.engine, self.replicas)
        while clock.seconds() < end:
            began, shown = time.perf_counter(), int(clock.seconds() / every)
            account = next(rounds)
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            worked_s += time.perf_counter() - began
            taus.append(account[0].tau)
            if int(clock.seconds() / every) > shown or clock.seconds() >= end:
                self._look(series, account[0].tau)
        steps = workers.total_steps - before
        return {
            **series,
            "rounds": [[tau, len(list(same))] for tau, same in itertools.groupby(taus)],
            "step_s": worked_s / max(1, steps * self.study.m),
            "device": torch.cuda.get_device_name() if self.device.type == "cuda" else "the CPU",
            "images": "Synthetic images of CIFAR's form" if self._synthetic else "CIFAR from an archive",
            "data": asdict(track.workload.description()),
        }

    @property
    def _synthetic(self) -> bool:
        return self.track.workload.description().synthetic

    def _look(self, found: Record, tau: int) -> None:
        """Loss and accuracy of the averaged model, which costs no simulated time."""
        found["seconds"].append(self.workers.clock.seconds())
        found["step"].append(self.workers.total_steps)
        found["taus"].append(tau)
        with torch.no_grad():
            found["losses"].append(float(self.track.workload.objective(self.models[0])))
        found["accuracies"].append(self.track.workload.accuracy(self.models[0]))


def _joined(pieces: Sequence[Record]) -> Record:
    """Return the pieces of one run, one after the other; at the start tau is that of the first round."""
    names = ("seconds", "step", "taus", "losses", "accuracies", "rounds")
    series = {name: list(itertools.chain.from_iterable(piece[name] for piece in pieces)) for name in names}
    return {**series, "taus": [series["rounds"][0][0], *series["taus"][1:]]}


def preset(*, gpu: bool) -> AdaCommCifar:
    """Return the form for this machine."""
    if not gpu:
        return AdaCommCifar(tracks(gpu=False))
    return AdaCommCifar(
        tracks(gpu=True), taus=(1, 5, 20, 100), rates=(CONSTANT, DECAYED), seeds=(10, 11, 12), points=40, device="cuda"
    )


PRESET = preset(gpu=torch.cuda.device_count() > 0)
