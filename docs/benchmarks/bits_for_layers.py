"""Water-filling against one constant for all parameters at equal bits: errors on gradients and losses in training.

    python docs/measure.py benchmarks/bits_for_layers.py > docs/data/bits_for_layers.jsonl
    python docs/measure.py benchmarks/bits_for_layers.py errors mlp  # some parts alone

error : the NMSE of one gradient by TCDQ on each parameter, with one omega for all parameters and with the operators
of ``for_bits(..., layers=)``.  ``gain`` is the first over the second, ``law`` the gain that the limits allow at the
gradient's variances and the bits of the messages.  Gradients: those of rate_distortion.py, and those of one batch in
the trainings of the recorded pilots after 1, 20 and 200 steps.
loss : the mean loss of the batches of WORKERS simulated workers over STEPS steps and over the last TAIL, one run for
each seed.  A worker sends each parameter as a message of its own, as the DDP hook does; "bits" are those of all
messages per coordinate, headers counted.  "filled" gets BITS bits per coordinate, as declared.  "one" follows the bits
that "filled" has sent, by one omega.  "none" sends float32.  Without losses the run has diverged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from messages import bits_and_nmse
from rate_distortion import gradients, network

from bounds.limits import unbiased_water_filling
from gpu_validation.piloting.recorded import RECIPES, batches
from operators import TCDQ, Key, Operator, WaterFilling, for_bits
from operators.combinators.scope import LayerWise
from operators.ddp.assignment import Assignment
from operators.feedback.memoryless import Memoryless

BITS, WORKERS, STEPS = 0.25, 4, 100
RATES = (0.5, 1.0, 2.0)  # of the errors
MOMENTS = (1, 20, 200)  # steps of the recorded trainings after which a gradient is taken
DRAWS = 3
RULES = ("none", "filled", "one")
TAIL = 20  # steps over which the last loss is averaged
HEAD = {"steps": STEPS, "workers": WORKERS, "budget": BITS, "tail": TAIL}
OF_NOW, OF_ALL = 0.25, 0.02  # by which log omega follows the bits of the step, and of all steps


# -- errors -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class OneOmega(LayerWise):
    """TCDQ with one omega on each parameter, as a family."""

    operator: Operator = TCDQ()  # noqa: RUF009  frozen
    sizes: tuple[int, ...] = (1,)
    omega: float = 1.0

    name = "one_omega"
    rate = TCDQ.rate

    def operator_of(self, number: int) -> Operator:
        """The same for all."""
        return TCDQ(omega=self.omega)


def sources() -> Iterator[tuple[str, np.ndarray, tuple[int, ...]]]:
    """(name, gradient, sizes of its parameters)."""
    for name, x in gradients():
        if name.endswith("all"):
            yield name, x, sizes_of(network(name[:3]))
    for name, recipe in RECIPES.items():
        model = recipe.workload.model()
        optimizer, keys = recipe.optimizer(model.parameters()), batches(WORKERS)
        for step in range(1, MOMENTS[-1] + 1):
            x = gradient_of(model, recipe.loss(model, next(keys)))
            if step in MOMENTS:
                yield f"{name}, step {step}", x.numpy().copy(), sizes_of(model)
            optimizer.step()


def sizes_of(model: torch.nn.Module) -> tuple[int, ...]:
    """Entries of each parameter."""
    return tuple(p.numel() for p in model.parameters())


def gradient_of(model: torch.nn.Module, loss: torch.Tensor) -> torch.Tensor:
    """The gradient of a loss as one vector; it stays in the parameters."""
    model.zero_grad()
    loss.backward()
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in model.parameters()])


def error_record(name: str, x: np.ndarray, sizes: tuple[int, ...], rate: float) -> dict[str, Any]:
    """Both errors at equal bits."""
    filled = for_bits("tcdq", rate, like=x, layers=sizes)
    bits = filled.encode(x, key=Key(0)).bits / x.size
    one = for_bits(OneOmega(sizes=sizes), bits, like=x)
    variances = [float(np.mean(np.square(p, dtype=np.float64))) for p in np.split(x, np.cumsum(sizes)[:-1])]
    present = [(v, n) for v, n in zip(variances, sizes, strict=True) if v > 0]
    law = unbiased_water_filling([v for v, _ in present], [n for _, n in present], bits * x.size)
    errors = {rule: nmse(operator, x) for rule, operator in (("one", one), ("filled", filled))}
    return {
        "record": "error",
        "gradient": name,
        "d": x.size,
        "parameters": len(sizes),
        "bits": bits,
        "bits_one": one.encode(x, key=Key(0)).bits / x.size,
        **errors,
        "gain": errors["one"] / errors["filled"],
        "law": float(law.equal.midpoint / law.error.midpoint),
    }


def nmse(operator: Operator, x: np.ndarray) -> float:
    """Mean over a few draws."""
    return float(np.mean([bits_and_nmse(operator, x, Key(1, step=k))[1] for k in range(DRAWS)]))


# -- losses -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Task:
    """A training: a model for a seed, its optimizer, the loss of (model, seed, worker, step), and the seeds."""

    model: Callable[[int], torch.nn.Module]
    optimizer: Callable[..., torch.optim.Optimizer]
    loss: Callable[[torch.nn.Module, int, int, int], torch.Tensor]
    seeds: int


@cache
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """The images and labels of rate_distortion.py."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return torch.tensor(found.images[:, None] / 16, dtype=torch.float32), torch.tensor(found.target)


def of_digits(model: torch.nn.Module, seed: int, worker: int, step: int) -> torch.Tensor:
    """Cross-entropy of 32 images."""
    images, labels = digits()
    draw = torch.Generator().manual_seed(1_000_000 * seed + 10_000 * worker + step)
    batch = torch.randint(len(labels), (32,), generator=draw)
    return torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])


def seeded(kind: str, seed: int) -> torch.nn.Module:
    """One of the networks of rate_distortion.py."""
    torch.manual_seed(seed)
    return network(kind)


def of_recipe(name: str) -> Task:
    """The training of a recorded pilot; a seed has batches of its own."""
    recipe = RECIPES[name]

    def loss(model: torch.nn.Module, seed: int, worker: int, step: int) -> torch.Tensor:
        return recipe.loss(model, Key(100 + seed, rank=worker, step=step))

    return Task(lambda seed: recipe.workload.model(), recipe.optimizer, loss, seeds=3)


def tasks() -> dict[str, Task]:
    """All trainings by name."""
    sgd = partial(torch.optim.SGD, lr=0.05, momentum=0.9)
    small = {kind: Task(partial(seeded, kind), sgd, of_digits, seeds=5) for kind in ("mlp", "cnn")}
    return small | {name: of_recipe(name) for name in RECIPES}


class Rule:
    """What the workers send: float32 each, and the mean that all decode."""

    def __init__(self, sizes: dict[str, int], seed: int) -> None:
        self.sizes, self.key = sizes, Key(seed)
        self.bits: list[int] = []  # of all messages, by step

    def mean(self, worker_gradients: Sequence[torch.Tensor], step: int) -> torch.Tensor:
        """The mean that all workers decode."""
        self.bits.append(32 * sum(self.sizes.values()) * WORKERS)
        return torch.stack(list(worker_gradients)).mean(0)

    def coded(self, worker_gradients: Sequence[torch.Tensor], step: int, operators: Sequence[Operator]) -> Any:
        """The means of the parameters by an operator for each, which are counted."""
        total, bits = [torch.zeros(size, dtype=torch.float64) for size in self.sizes.values()], 0
        for worker, gradient in enumerate(worker_gradients):
            for number, part in enumerate(gradient.split(list(self.sizes.values()))):
                key = replace(self.key, rank=worker, step=step).fold_in(number)
                message = operators[number].encode(part, key=key)
                bits += message.bits
                total[number] += operators[number].decode(message, d=part.numel(), key=key).double() / WORKERS
        self.bits.append(bits)
        return [part.float() for part in total]


class Filled(Rule):
    """The assignment of the DDP hook."""

    def __init__(self, sizes: dict[str, int], seed: int) -> None:
        super().__init__(sizes, seed)
        pieces = {parameter: [size] for parameter, size in sizes.items()}
        self.assignment = Assignment(Memoryless(TCDQ()), WaterFilling(bits=BITS), pieces, WORKERS)

    def mean(self, worker_gradients: Sequence[torch.Tensor], step: int) -> torch.Tensor:
        """The mean, from which the next bits are assigned."""
        operators = [self.assignment.method_of(parameter).operator for parameter in self.sizes]
        means = self.coded(worker_gradients, step, operators)
        self.assignment.observe(list(self.sizes), means)
        self.assignment.step()
        return torch.cat(means)


class One(Rule):
    """One omega for all parameters, which follows the bits that another rule has sent, step by step."""

    def __init__(self, sizes: dict[str, int], seed: int, followed: Sequence[int]) -> None:
        super().__init__(sizes, seed)
        start = Filled(sizes, seed).assignment.method_of(next(iter(sizes))).operator
        self.followed, self.omega = followed, float(start.omega)  # type: ignore[attr-defined]  # TCDQ

    def mean(self, worker_gradients: Sequence[torch.Tensor], step: int) -> torch.Tensor:
        """The mean; the next omega repays what was sent too much or too little."""
        means = self.coded(worker_gradients, step, [TCDQ(omega=self.omega)] * len(self.sizes))
        now = math.log(self.bits[step] / self.followed[step])
        so_far = (sum(self.bits) - sum(self.followed[: step + 1])) / self.followed[step]
        self.omega *= math.exp(OF_NOW * now + OF_ALL * so_far)
        return torch.cat(means)


def loss_records(name: str, task: Task, seed: int) -> Iterator[dict[str, Any]]:
    """Three trainings: uncompressed, filled, and one omega with as many bits as filled."""
    followed: Sequence[int] = ()
    for rule in RULES:
        record, followed = trained(task, rule, seed, followed)
        yield {"record": "loss", "training": name, "rule": rule, "seed": seed, **record}


def trained(task: Task, name: str, seed: int, followed: Sequence[int]) -> tuple[dict[str, Any], list[int]]:
    """Losses of one training, and the bits of each step."""
    model = task.model(seed)
    sizes = {parameter: p.numel() for parameter, p in model.named_parameters()}
    rules = {"none": lambda: Rule(sizes, seed), "filled": lambda: Filled(sizes, seed)}
    rule = rules.get(name, lambda: One(sizes, seed, followed))()
    optimizer, losses = task.optimizer(model.parameters()), []
    for step in range(STEPS):
        found = []
        for worker in range(WORKERS):
            value = task.loss(model, seed, worker, step)
            losses.append(float(value.detach()))
            found.append(gradient_of(model, value))
        if not all(bool(gradient.isfinite().all()) for gradient in found):
            return {"bits": None, "mean_loss": None, "last_loss": None}, rule.bits  # diverged
        mean = rule.mean(found, step)
        for p, part in zip(model.parameters(), mean.split(list(sizes.values())), strict=True):
            p.grad = part.view_as(p)
        optimizer.step()
    bits = sum(rule.bits) / (STEPS * WORKERS * sum(sizes.values()))
    mean_loss, last = float(np.mean(losses)), float(np.mean(losses[-TAIL * WORKERS :]))
    return {"bits": bits, "mean_loss": mean_loss, "last_loss": last}, rule.bits


def main(parts: tuple[str, ...] = (), rates: tuple[float, ...] = RATES, seeds: int = 5) -> Iterator[dict[str, Any]]:
    """All parts, or some: "errors" and the names of trainings."""
    if not parts or "errors" in parts:
        yield from (error_record(name, x, sizes, rate) for name, x, sizes in sources() for rate in rates)
    for name, task in tasks().items():
        if not parts or name in parts:
            for seed in range(min(seeds, task.seeds)):
                yield from loss_records(name, task, seed)
