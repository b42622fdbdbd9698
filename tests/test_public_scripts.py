"""Public scripts, written anew, that ten changed lines turn into local SGD or compressed DDP, bit by bit as by hand."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss, nll_loss
from torch.utils.data import DataLoader, DistributedSampler, random_split

from gpu_validation import run_ranks
from operators import ErrorFeedback, Key, TopK
from tests import forked, scripts

DOCS = Path(__file__).parent.parent / "docs"
PUBLIC = DOCS / "scripts/public"
GUIDE = (DOCS / "guides/turn_a_public_script.md").read_text()
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
RANKS, TAU = 2, 8

pytestmark = pytest.mark.timeout(280)


# -- what the patches are ------------------------------------------------------------------------------------
def patched(kind, name, folder):
    """The script in a folder of its own, changed by ``git apply``."""
    shutil.copy(PUBLIC / f"{name}.py", folder)
    command = ["git", "apply", "-p0", str(PUBLIC / kind / f"{name}.patch")]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return folder / f"{name}.py"


def changed_lines(kind, name):
    """Additions and deletions, each counted, without the two lines that name the file."""
    return sum(line[0] in "+-" for line in (PUBLIC / kind / f"{name}.patch").read_text().splitlines()[2:])


@pytest.mark.parametrize("kind", ["local_sgd", "compressed_ddp"])
@pytest.mark.parametrize("name", ["ddp_tutorial", "mnist", "min_gpt"])
def test_a_patch_applies_has_ten_lines_at_most_and_is_shown_by_the_guide(kind, name, tmp_path):
    text = patched(kind, name, tmp_path).read_text()

    compile(text, name, "exec")
    assert ("PeriodicAveraging(" in text) == (kind == "local_sgd")
    assert ("register(" in text.replace("register_step", "")) == (kind == "compressed_ddp")
    assert changed_lines(kind, name) <= 10
    assert f"{{literalinclude}} ../scripts/public/{kind}/{name}.patch\n:language: diff\n" in GUIDE


@pytest.mark.parametrize("name", ["ddp_tutorial", "mnist", "min_gpt"])
def test_the_guide_counts_the_lines(name):
    assert f"| `{name}.py` | {changed_lines('local_sgd', name)} | {changed_lines('compressed_ddp', name)} |" in GUIDE


def test_every_patch_has_its_script():
    names = {path.stem for path in PUBLIC.glob("*.py")}

    assert names == {path.stem for path in PUBLIC.glob("local_sgd/*.patch")}
    assert names == {path.stem for path in PUBLIC.glob("compressed_ddp/*.patch")}


# -- the same by hand ----------------------------------------------------------------------------------------
def mean_of_ranks(vector):
    parts = [torch.empty_like(vector) for _ in range(RANKS)]
    dist.all_gather(parts, vector)
    return sum(part.double() / RANKS for part in parts).float()


class Models:
    """Whole models become their mean after every tau-th step, and at the end of an epoch."""

    def __init__(self, model, fraction):
        self.parameters, self.steps = list(model.parameters()), 0

    def before_step(self):
        pass

    def after_step(self):
        self.steps += 1
        if self.steps == TAU:
            self.after_epoch()

    @torch.no_grad()
    def after_epoch(self):
        for p in self.parameters:
            p.copy_(mean_of_ranks(p.flatten()).view_as(p))
        self.steps = 0


class Gradients:
    """A gradient becomes the mean of what each rank's message decodes to."""

    def __init__(self, model, fraction):
        self.parameters, self.method = list(model.parameters()), ErrorFeedback(TopK(fraction=fraction))
        self.d = sum(p.numel() for p in self.parameters)
        self.state = self.method.init(self.d)

    def before_step(self):
        gradient = torch.cat([p.grad.flatten() for p in self.parameters])
        self.state, message = self.method.encode(self.state, gradient, key=Key(0))
        _, decoded = self.method.decode(self.method.init_receiver(self.d), message, d=self.d, key=Key(0))
        means = mean_of_ranks(decoded).split([p.numel() for p in self.parameters])
        for p, mean in zip(self.parameters, means, strict=True):
            p.grad = mean.view_as(p)

    def after_step(self):
        pass

    def after_epoch(self):
        pass


def ddp_tutorial(rank, exchange_of):
    script = scripts.load("scripts/public", "ddp_tutorial")
    train_set = script.LinearDataset(1200)
    torch.manual_seed(0)
    model = torch.nn.Linear(20, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    exchange = exchange_of(model, 0.25)
    sampler = DistributedSampler(train_set, RANKS, rank)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for points, values in DataLoader(train_set, batch_size=32, sampler=sampler):
            optimizer.zero_grad()
            mse_loss(model(points), values).backward()
            exchange.before_step()
            optimizer.step()
            exchange.after_step()
        exchange.after_epoch()
    return model


def mnist(rank, exchange_of):
    script = scripts.load("scripts/public", "mnist")
    torch.manual_seed(1)
    train_set, test_set = script.load_digits()
    model = script.Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    exchange = exchange_of(model, 0.05)
    sampler = DistributedSampler(train_set, RANKS, rank, shuffle=False)
    for epoch in range(2):
        for group in optimizer.param_groups:
            group["lr"] = 0.7**epoch
        for images, labels in DataLoader(train_set, batch_size=64, sampler=sampler):
            optimizer.zero_grad()
            nll_loss(model(images), labels).backward()
            exchange.before_step()
            optimizer.step()
            exchange.after_step()
        exchange.after_epoch()
        iter(DataLoader(test_set))  # as an evaluation begins, it draws one number of the stream of dropout
    return model


def min_gpt(rank, exchange_of):
    script = scripts.load("scripts/public", "min_gpt")
    torch.manual_seed(0)
    dataset = script.CharDataset(script.DataConfig())
    size = int(len(dataset) * 0.9)
    train_set, test_set = random_split(dataset, [size, len(dataset) - size])
    model = script.GPT(script.GPTConfig(vocab_size=dataset.vocab_size, block_size=dataset.block_size))
    optimizer = script.create_optimizer(model, script.OptimizerConfig())
    exchange = exchange_of(model, 0.05)
    sampler, test_sampler = (DistributedSampler(part, RANKS, rank) for part in (train_set, test_set))
    for epoch in (1, 2):
        sampler.set_epoch(epoch)
        for tokens, following in DataLoader(train_set, batch_size=32, sampler=sampler):
            _, loss = model(tokens, following)
            optimizer.zero_grad()
            loss.backward()
            exchange.before_step()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            exchange.after_step()
        exchange.after_epoch()
        test_sampler.set_epoch(epoch)
        for tokens, following in DataLoader(test_set, batch_size=32, sampler=test_sampler):
            with torch.no_grad():
                model(tokens, following)  # with dropout, as the script evaluates
    return model


@cache
def by_hand(loop, exchange_of):
    """The parameters that two ranks end with; both the same."""

    def work(place, emit):
        parameters = loop(place.rank, exchange_of).parameters()
        emit((place.rank, [p.detach().numpy().copy() for p in parameters]))

    reports = dict(run_ranks(work, processes=RANKS, hang_timeout_s=60))
    first, second = ([torch.from_numpy(p) for p in reports[rank]] for rank in range(RANKS))
    assert same(first, second)
    return first


def same(some, others):
    return all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


# -- the scripts by torchrun ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Script:
    """by_hand : its loop.  arguments : of its command line.  parameters : what it has saved, from its folder."""

    by_hand: Callable
    arguments: tuple[str, ...]
    parameters: Callable


SCRIPTS = {
    "ddp_tutorial": Script(
        ddp_tutorial, ("2", "1"), lambda folder: torch.load(folder / "snapshot.pt", weights_only=True)["MODEL_STATE"]
    ),
    "mnist": Script(
        mnist, ("--epochs", "2", "--save-model"), lambda folder: torch.load(folder / "mnist.pt", weights_only=True)
    ),
    "min_gpt": Script(min_gpt, (), lambda folder: torch.load(folder / "snapshot.pt", weights_only=True)["model_state"]),
}
KINDS = {"local_sgd": Models, "compressed_ddp": Gradients}


def run(path, launcher=TORCHRUN):
    """The parameters that the script saves, by their names."""
    variables = {**os.environ, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "5"}
    command = [*launcher, str(path), *SCRIPTS[path.stem].arguments]
    result = subprocess.run(
        command, cwd=path.parent, env=variables, capture_output=True, text=True, timeout=200, check=False
    )
    return saved_by(path, result)


def run_in_forks(path):
    """The same, by the launcher of torchrun in this process."""
    return saved_by(path, forked.torchrun(path, *SCRIPTS[path.stem].arguments, folder=path.parent))


def saved_by(path, result):
    assert result.returncode == 0, result.stderr
    parameters = SCRIPTS[path.stem].parameters(path.parent)
    return [value for name, value in parameters.items() if not name.endswith("future")]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_patched_script_gives_the_bits_of_a_loop_by_hand(kind, name, tmp_path):
    saved = (run if kind == "local_sgd" else run_in_forks)(patched(kind, name, tmp_path))

    assert same(saved, by_hand(SCRIPTS[name].by_hand, KINDS[kind]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_without_a_patch(name, tmp_path):
    shutil.copy(PUBLIC / f"{name}.py", tmp_path)

    path = tmp_path / f"{name}.py"
    saved = run(path, [sys.executable]) if name == "mnist" else run_in_forks(path)

    assert all(value.isfinite().all() for value in saved)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("local_sgd", f"schedule={TAU}", f"schedule={TAU + 1}"),
        ("local_sgd", "            self.averaging.average()\n", ""),
        ("compressed_ddp", "        register(self.model, ErrorFeedback(TopK(fraction=0.25)))\n", ""),
    ],
    ids=["one step more", "no last averaging", "no compression"],
)
def test_a_wrong_line_is_noticed(kind, right, wrong, tmp_path):
    path = patched(kind, "ddp_tutorial", tmp_path)
    text = path.read_text()
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong))

    assert not same(run_in_forks(path), by_hand(ddp_tutorial, KINDS[kind]))
