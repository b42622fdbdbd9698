"""Time to a target of schedule="auto" over that of the best fixed tau, on a simulated clock, as JSON lines.

Run ``python docs/measure.py benchmarks/automatic_tau.py {design,held-out} > docs/data/automatic_tau_HALF.jsonl``.

The rule was chosen on the twelve problems of the half "design".  Those of "held-out" were fixed before and run once.
The half "earlier" in docs/data has the problems of "held-out" under the rule of 4b9f5ba0.

All runs of a problem are stepped together by ``torch.func.vmap``; the rule is the one that training uses, and receives
the same measurements.  A local step takes 1 on average, drawn per worker; an averaging takes D, a probe 1.  A
target is a share of the fall of the loss that synchronous training has in 300 steps with the same seed.  A time is read
between averagings, linear in the loss.  Each line has medians of three seeds for a problem, D/Y and share: the best
fixed tau, its time in local steps, and the times of other choices over it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.functional import binary_cross_entropy_with_logits, cosine_similarity, cross_entropy, gelu

from bounds.schedules import GradientRetention, Measured, Observation, Schedule
from gpu_validation.workloads.digits import digits

TAUS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
RATIOS = (1.0, 5.0, 20.0)
SHARES = (0.9, 0.98)
SEEDS = (0, 1, 2)
REFERENCE, LONGEST = 300, 900  # steps of the synchronous run, and of any
LOOK = 4  # steps between two losses, at least
ADAM, ADAGRAD = 1e-8, 1e-10  # eps


@dataclass(frozen=True)
class Problem:
    """Model, loss, data and optimizer; ``shards`` are the rows of each worker, all rows if it is empty."""

    name: str
    model: Callable[[], nn.Module]
    loss: Callable[..., Tensor]
    data: tuple[Tensor, ...]
    lr: float
    optimizer: str = "sgd"
    m: int = 4
    batch: int = 16
    shards: Sequence[np.ndarray] = ()
    looked_at: int = 512  # rows for the loss


@dataclass
class Run:
    """One training of m workers under one rule."""

    seed: int
    schedule: int | Schedule
    delay: float = 0.0
    history: list[tuple[float, int, float]] = field(default_factory=list)  # compute, rounds, loss

    def begin(self, m: int, lr: float) -> None:
        self.tau, self.inside, self.looked, self.pending = 0, 0, -LOOK, 0
        self.compute, self.rounds, self.known = 0.0, 0, {}
        self.spent, self.state, self.last = np.zeros(m), None, None
        if isinstance(self.schedule, int):
            self.tau = self.schedule
        else:
            start = Observation(0.0, 0, lr, measured=Measured())
            self.state, self.tau = self.schedule(self.schedule.init(), start)

    def decide(self, step: int, lr: float, m: int) -> None:
        """Choose tau from the round that has ended and the averaging before it."""
        mean = float(self.spent.mean())
        measured = Measured(compute_s=mean, wait_s=float(self.spent.max() - mean), workers=m, **self.known)
        seen = Observation(self.compute + self.rounds * self.delay, step, lr, measured=measured)
        self.state, self.tau = self.schedule(self.state, seen)
        self.known = {"delay_s": self.delay}


class Batch:
    """All runs of a problem, stepped together."""

    def __init__(self, problem: Problem, runs: Sequence[Run]) -> None:
        self.problem, self.runs = problem, runs
        starts = {}
        for seed in {run.seed for run in runs}:
            torch.manual_seed(1000 + seed)
            self.template = problem.model()
            starts[seed] = torch.cat([p.detach().flatten() for p in self.template.parameters()])
        self.shapes = {name: p.shape for name, p in self.template.named_parameters()}
        self.anchors = torch.stack([starts[run.seed] for run in runs])
        self.x = self.anchors[:, None].repeat(1, problem.m, 1)
        self.first, self.second = torch.zeros_like(self.x), torch.zeros_like(self.x)
        rows = np.random.default_rng(7).permutation(len(problem.data[0]))[: problem.looked_at]
        self.fixed = [a[torch.as_tensor(rows)] for a in problem.data]
        self._gradients = vmap(grad_and_value(self._single))
        self._losses = vmap(self._single, in_dims=(0,) + (None,) * len(self.fixed))

    def _single(self, x: Tensor, *batch: Tensor) -> Tensor:
        parts = x.split([shape.numel() for shape in self.shapes.values()])
        named = {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
        return self.problem.loss(lambda *a: functional_call(self.template, named, a), *batch)

    def gradients(self, which: Sequence[int], draws: dict[int, np.ndarray]) -> tuple[Tensor, Tensor]:
        """Gradients (runs, m, d) and losses (runs, m) of these runs on the batches of this step."""
        rows = torch.as_tensor(np.stack([draws[self.runs[i].seed] for i in which]))
        chosen = [a[rows].flatten(0, 1) for a in self.problem.data]
        gradients, losses = self._gradients(self.x[list(which)].flatten(0, 1), *chosen)
        m = self.problem.m
        return gradients.detach().view(len(which), m, -1), losses.detach().view(len(which), m)

    def losses(self, which: Sequence[int]) -> list[float]:
        with torch.no_grad():
            return self._losses(self.anchors[list(which)], *self.fixed).tolist()

    def update(self, which: Sequence[int], g: Tensor, step: int) -> None:
        p, rows = self.problem, list(which)
        if p.optimizer == "sgd":
            self.x[rows] -= p.lr * g
        elif p.optimizer == "momentum":
            self.first[rows] = 0.9 * self.first[rows] + g
            self.x[rows] -= p.lr * self.first[rows]
        elif p.optimizer == "adam":
            self.first[rows] = 0.9 * self.first[rows] + 0.1 * g
            self.second[rows] = 0.999 * self.second[rows] + 0.001 * g * g
            self.x[rows] -= p.lr * self.first[rows] / (1 - 0.9**step) * self.preconditioner(rows, step)
        else:
            self.second[rows] += g * g
            self.x[rows] -= p.lr * g * self.preconditioner(rows, step)

    def preconditioner(self, rows: Sequence[int] | int, step: int) -> Tensor:
        if self.problem.optimizer == "adam":
            return 1 / ((self.second[rows] / (1 - 0.999**step)).sqrt() + ADAM)
        return 1 / (self.second[rows].sqrt() + ADAGRAD) if self.problem.optimizer == "adagrad" else torch.ones(())

    def go(self, steps: int, until: dict[int, float] | None = None) -> None:
        """Train; a run ends when its loss is below that of its seed in ``until``."""
        p, runs, m = self.problem, self.runs, self.problem.m
        shards = p.shards or [np.arange(len(p.data[0]))] * m
        streams = {run.seed: np.random.default_rng(50 + run.seed) for run in runs}
        for run, loss in zip(runs, self.losses(range(len(runs))), strict=True):
            run.begin(m, p.lr)
            run.history.append((0.0, 0, loss))
        alive = list(range(len(runs)))
        for step in range(1, steps + 1):
            draws, times = {}, {}
            for seed, rng in streams.items():
                draws[seed] = np.stack([shard[rng.integers(0, len(shard), p.batch)] for shard in shards])
                times[seed] = 0.9 + 0.1 * rng.exponential(size=(2, m))
            ending = [i for i in alive if runs[i].inside + 1 >= runs[i].tau]
            probing = [i for i in ending if runs[i].state is not None and runs[i].state.probe and runs[i].tau > 1]
            places = {i: self.x[i].clone() for i in probing}
            g, losses = self.gradients(alive, draws)
            self.update(alive, g, step)
            for i in alive:
                runs[i].spent += times[runs[i].seed][0]
                runs[i].inside += 1
            if not ending:
                continue
            means = self.x[ending].mean(1)
            moves = dict(zip(ending, means - self.anchors[ending], strict=True))
            self.x[ending], self.anchors[ending] = means[:, None].expand(-1, m, -1), means
            looking = [i for i in ending if step - runs[i].looked >= LOOK]
            looked = dict(zip(looking, self.losses(looking), strict=True)) if looking else {}
            again = self.gradients(probing, draws) if probing else None
            for i in ending:
                run = runs[i]
                run.compute += float((run.spent + times[run.seed][1] * run.pending).max())
                run.rounds, run.pending = run.rounds + 1, 0
                if run.state is not None:
                    run.decide(step, p.lr, m)
                    if again is not None and i in probing:
                        k, j = probing.index(i), alive.index(i)
                        weights = self.preconditioner(i, step)
                        run.known |= probed(g[j], losses[j], again[0][k], again[1][k], places[i] - self.x[i], weights)
                        run.pending = 1
                    if run.last is not None:
                        run.known["turn"] = float(cosine_similarity(run.last, moves[i], dim=0))
                    run.last = moves[i].clone()
                run.spent, run.inside = np.zeros(m), 0
                if i in looked:
                    run.history.append((run.compute, run.rounds, looked[i]))
                    run.looked = step
            alive = [i for i in alive if i not in looked or not ended(looked[i], runs[i], until)]
            if not alive:
                return


def ended(loss: float, run: Run, until: dict[int, float] | None) -> bool:
    return not math.isfinite(loss) or (until is not None and loss < until[run.seed])


def probed(h: Tensor, before: Tensor, u: Tensor, now: Tensor, way: Tensor, weights: Tensor) -> dict[str, float]:
    """Numbers of a probe, as ``gpu_validation.averaging.pacing.probing`` has them."""
    slope, slope_at_mean = (h * way).sum(1), (u * way).sum(1)
    bend = before - now - (slope + slope_at_mean) / 2
    return {
        "lost": float(((u - h) * weights * u).sum(1).mean()),
        "fresh": float((u * weights * u).sum(1).mean()),
        "loss_jump": float((now - before).mean()),
        "bend2": float((bend**2).mean()),
        "curve": float(((slope - slope_at_mean) / 2).mean()),
    }


def time_to(run: Run, level: float, delay: float) -> float:
    """First passage, linear in the loss between two averagings."""
    before_s = before = 0.0
    for compute, rounds, loss in run.history:
        now_s = compute + rounds * delay
        if loss <= level:
            return before_s + (before - level) / (before - loss) * (now_s - before_s)
        before_s, before = now_s, loss
    return math.inf


def measured(problem: Problem) -> list[dict[str, object]]:
    references = [Run(seed, 1) for seed in SEEDS]
    Batch(problem, references).go(REFERENCE)
    levels = {}
    for run in references:
        start, end = run.history[0][2], float(np.mean([row[2] for row in run.history[-5:]]))
        levels[run.seed] = [start - share * (start - end) for share in SHARES]
    last = {seed: level[-1] for seed, level in levels.items()}
    fixed = {(tau, seed): Run(seed, tau) for tau in TAUS for seed in SEEDS}
    automatic = {(ratio, seed): Run(seed, GradientRetention(), ratio) for ratio in RATIOS for seed in SEEDS}
    for runs in (fixed, automatic):
        Batch(problem, list(runs.values())).go(LONGEST, last)
    lines = []
    for ratio in RATIOS:
        for k, share in enumerate(SHARES):
            times = {t: median([time_to(fixed[t, s], levels[s][k], ratio) for s in SEEDS]) for t in TAUS}
            auto = median([time_to(automatic[ratio, s], levels[s][k], ratio) for s in SEEDS])
            best = min(times, key=lambda tau: times[tau])
            over = {name: time / times[best] for name, time in ratios_of(times, auto).items()}
            cell = {"problem": problem.name, "ratio": ratio, "share": share, "best": best, "steps": times[best]}
            lines.append(cell | {name: round(each, 3) for name, each in over.items()})
    return lines


def ratios_of(times: dict[int, float], auto: float) -> dict[str, float]:
    return {"auto": auto, "tau = 16": times[16], "tau = 32": times[32], "synchronous": times[1]}


# -- problems ----------------------------------------------------------------------------------------------------
def mlp(*widths: int, between: type[nn.Module] = nn.ReLU) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), between()]
        return nn.Sequential(*layers[:-1])

    return made


def conv(channels: int = 6) -> nn.Module:
    first, second = nn.Conv2d(1, channels, 3, padding=1), nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
    body = [nn.Unflatten(1, (1, 8, 8)), first, nn.ReLU(), second, nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(2 * channels * 16, 10))


class Recurrent(nn.Module):
    """A GRU, or a plain tanh network, over the rows of an image."""

    def __init__(self, width: int = 16, gated: bool = True) -> None:
        super().__init__()
        outputs = 3 * width if gated else width
        self.inputs, self.hidden, self.last = nn.Linear(8, outputs), nn.Linear(width, outputs), nn.Linear(width, 10)
        self.width, self.gated = width, gated

    def forward(self, x: Tensor) -> Tensor:
        entries, h = self.inputs(x.reshape(-1, 8, 8)), torch.zeros(x.shape[0], self.width)
        for t in range(8):
            own = self.hidden(h)
            if not self.gated:
                h = torch.tanh(entries[:, t] + own)
                continue
            (r, z, new), (r2, z2, new2) = entries[:, t].chunk(3, -1), own.chunk(3, -1)
            z = torch.sigmoid(z + z2)
            h = (1 - z) * torch.tanh(new + torch.sigmoid(r + r2) * new2) + z * h
        return self.last(h)


class Attention(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed, self.place = nn.Linear(8, width), nn.Parameter(torch.randn(8, width) * 0.3)
        self.queries, self.up = nn.Linear(width, 3 * width), nn.Linear(width, 2 * width)
        self.down, self.last = nn.Linear(2 * width, width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x.reshape(-1, 8, 8)) + self.place
        q, k, v = self.queries(h).chunk(3, -1)
        h = h + torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v
        return self.last((h + self.down(gelu(self.up(h)))).mean(1))


class Vector(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(d))

    def forward(self, _: Tensor) -> Tensor:
        return self.w


class Factors(nn.Module):
    def __init__(self, rows: int, columns: int, rank: int) -> None:
        super().__init__()
        self.u, self.v = nn.Parameter(torch.randn(rows, rank) * 0.3), nn.Parameter(torch.randn(columns, rank) * 0.3)

    def forward(self, places: Tensor) -> Tensor:
        return (self.u[places[:, 0]] * self.v[places[:, 1]]).sum(1)


def classified(model: Callable[..., Tensor], x: Tensor, y: Tensor) -> Tensor:
    return cross_entropy(model(x), y)


def squared(model: Callable[..., Tensor], x: Tensor, y: Tensor) -> Tensor:
    return ((model(x)[:, 0] - y) ** 2).mean()


def two_classes(model: Callable[..., Tensor], x: Tensor, y: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(model(x)[:, 0], y)


def different(labels: Tensor, alpha: float, seed: int, m: int = 4) -> list[np.ndarray]:
    """Rows of m workers whose classes are Dirichlet(alpha)."""
    rng, shards = np.random.default_rng(seed), [[] for _ in range(m)]
    for label in np.unique(labels.numpy()):
        rows = rng.permutation(np.where(labels.numpy() == label)[0])
        cuts = (np.cumsum(rng.dirichlet([alpha] * m)) * len(rows)).astype(int)[:-1]
        for shard, part in zip(shards, np.split(rows, cuts), strict=True):
            shard += list(part)
    return [np.array(s if len(s) >= 20 else s + list(rng.integers(0, len(labels), 20))) for s in shards]


def clusters(seed: int, d: int, k: int, spread: float) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    centres, labels = torch.randn(k, d, generator=g), torch.randint(k, (2000,), generator=g)
    return centres[labels] + spread * torch.randn(2000, d, generator=g), labels


def taught(seed: int, d: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    x, teacher = torch.randn(2000, d, generator=g), nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, 1))
    torch.manual_seed(seed)
    for p in teacher.parameters():
        nn.init.normal_(p)
    with torch.no_grad():
        return x, teacher(x)[:, 0] + 0.1 * torch.randn(2000, generator=g)


def quadratic(
    name: str, spectrum: np.ndarray, noise: float, lr: float, *, m: int = 4, apart: float = 0.0, seed: int = 0
):
    """Quadratic with known curvatures; the workers' minimisers lie ``apart``."""
    curvatures, g = torch.as_tensor(spectrum, dtype=torch.float32), torch.Generator().manual_seed(seed)
    rows, per = torch.randn(4096, len(spectrum), generator=g) * noise, 4096 // m
    centres = torch.randn(m, len(spectrum), generator=g) * apart
    centres -= centres.mean(0)
    for i in range(m):
        own = rows[i * per : (i + 1) * per]
        own -= own.mean(0) - centres[i] * curvatures

    def loss(model: Callable[..., Tensor], row: Tensor) -> Tensor:
        w = model(row)
        return (0.5 * curvatures * w * w).sum() + (row.mean(0) * w).sum()

    shards = [np.arange(i * per, (i + 1) * per) for i in range(m)]
    d = len(spectrum)
    return Problem(name, lambda: Vector(d), loss, (rows,), lr, m=m, batch=1, shards=shards, looked_at=4096)


def factorisation(name: str, a: int, b: int, rank: int, lr: float, seed: int, *, by_rows: bool = False) -> Problem:
    g = torch.Generator().manual_seed(seed)
    matrix = torch.randn(a, rank, generator=g) @ torch.randn(b, rank, generator=g).T / math.sqrt(rank)
    places = torch.stack([torch.randint(a, (3000,), generator=g), torch.randint(b, (3000,), generator=g)], 1)
    values = matrix[places[:, 0], places[:, 1]] + 0.3 * torch.randn(3000, generator=g)
    shards = [np.where((places[:, 0] * 4 // a).numpy() == i)[0] for i in range(4)] if by_rows else []

    def loss(model: Callable[..., Tensor], at: Tensor, value: Tensor) -> Tensor:
        return ((model(at) - value) ** 2).mean()

    return Problem(name, lambda: Factors(a, b, rank), loss, (places, values), lr, batch=32, shards=shards)


def problems(half: str) -> list[Problem]:
    x, y = digits()
    tanh = nn.Tanh
    if half == "design":
        return [
            Problem("mlp", mlp(64, 32, 10), classified, (x, y), 0.1),
            Problem("mlp, Dirichlet(.3)", mlp(64, 32, 10), classified, (x, y), 0.1, shards=different(y, 0.3, 0)),
            Problem("mlp, momentum", mlp(64, 32, 10), classified, (x, y), 0.02, "momentum"),
            Problem("mlp, Adam", mlp(64, 32, 10), classified, (x, y), 0.003, "adam", m=2),
            Problem("gru", Recurrent, classified, (x, y), 0.4),
            Problem("conv", conv, classified, (x, y), 0.1, batch=8),
            factorisation("factorisation", 30, 30, 3, 1.0, 1),
            quadratic("quadratic", np.repeat(np.geomspace(0.01, 1, 20), 3), 1.0, 0.1),
            Problem("softmax", mlp(64, 10), classified, (x, y), 0.2, batch=8),
            Problem(
                "softmax, Dirichlet(.2)", mlp(64, 10), classified, (x, y), 0.2, batch=8, shards=different(y, 0.2, 1)
            ),
            Problem("conv, momentum", conv, classified, (x, y), 0.02, "momentum", batch=8),
            Problem("teacher, Adam", mlp(10, 16, 1, between=tanh), squared, taught(5, 10), 0.01, "adam", batch=8),
        ]
    points, kinds = clusters(9, 30, 2, 1.8)
    eight = clusters(11, 40, 8, 1.5)
    apart = different(eight[1], 0.3, 2)
    return [
        Problem("deep tanh", mlp(20, 24, 24, 5, between=tanh), classified, clusters(3, 20, 5, 1.2), 0.15, m=8, batch=8),
        Problem("gelu, Adam", mlp(64, 24, 10, between=nn.GELU), classified, (x, y), 0.005, "adam", m=2, batch=8),
        Problem("gru, Adam", lambda: Recurrent(12), classified, (x, y), 0.01, "adam"),
        Problem("tanh rnn, momentum", lambda: Recurrent(20, gated=False), classified, (x, y), 0.02, "momentum"),
        Problem("conv, Dirichlet(.5)", lambda: conv(4), classified, (x, y), 0.15, shards=different(y, 0.5, 7)),
        Problem("attention, Adam", Attention, classified, (x, y), 0.005, "adam", m=2),
        factorisation("factorisation by rows", 40, 24, 4, 0.4, 8, by_rows=True),
        quadratic("quadratic, m = 8", np.repeat(np.arange(1, 41) ** -1.5, 2), 0.6, 0.3, m=8, seed=4),
        quadratic("quadratics apart", np.repeat(np.geomspace(0.02, 1, 15), 3), 0.7, 0.15, apart=0.5, seed=5),
        Problem("logistic, Adagrad", mlp(30, 1), two_classes, (points, kinds.float()), 0.1, "adagrad", batch=8),
        Problem("softmax, Dirichlet(.3)", mlp(40, 8), classified, eight, 0.01, "momentum", batch=8, shards=apart),
        Problem("teacher", mlp(16, 24, 1, between=tanh), squared, taught(6, 16), 0.05, m=2),
    ]


def main(half: Literal["design", "held-out"], only: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    for problem in problems(half):
        if not only or problem.name in only:
            yield from measured(problem)
