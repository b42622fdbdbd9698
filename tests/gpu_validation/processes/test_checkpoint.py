"""Checkpoints in real processes: written whole or not at all, used by all ranks or by none, one line when it fails."""

import enum
import importlib
import os
import resource
import signal
import tempfile
import threading
import time
import traceback
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.processes import checkpoint as module
from gpu_validation.processes.checkpoint import Checkpoint, CheckpointError
from gpu_validation.processes.launch import RunFailed, run_ranks
from gpu_validation.processes.tensors import flat
from operators import QSGD, ErrorFeedback, Key, TopK
from operators.ddp import register

pytestmark = pytest.mark.timeout(120)
NOBODY = 65534


def reports(work, processes=2):
    """What ``work(place)`` returns, in rank order."""

    def report(place, emit):
        emit((place.rank, work(place)))

    return [
        result for _, result in sorted(run_ranks(report, processes=processes, hang_timeout_s=30), key=lambda r: r[0])
    ]


class Number:
    """The smallest part of a run."""

    def __init__(self, value=0):
        self.value = value

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        self.value = state["value"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def complaint(act):
    """The words of the CheckpointError that ``act()`` must raise, one line."""
    with pytest.raises(CheckpointError) as caught:
        act()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_rank_finds_its_own_state_at_the_newest_step(tmp_path):
    def work(place):
        number, draw = Number(), torch.Generator().manual_seed(place.rank)
        checkpoint = Checkpoint(tmp_path / "new" / "folder", number=number, draw=draw)
        begun = checkpoint.load()
        for step in (3, 10):
            number.value = 100 * place.rank + step
            checkpoint.save(step)
        expected = torch.rand(3, generator=draw)
        resumed, other = Number(), torch.Generator()
        found = Checkpoint(tmp_path / "new" / "folder", number=resumed, draw=other).load()
        return begun, found, resumed.value, torch.equal(torch.rand(3, generator=other), expected)

    assert reports(work) == [(0, 10, 10, True), (0, 10, 110, True)]
    assert names(tmp_path / "new" / "folder") == [f"step-{s}-rank-{r}-of-2.pt" for s in (10, 3) for r in (0, 1)]


@pytest.fixture(scope="module")
def _imported_and_compiled_before_the_processes_fork():
    importlib.import_module("torch._dynamo")  # which every optimizer imports when it first steps
    TopK(k=4)(torch.linspace(-1, 1, 50), key=Key(0))


def training(place, folder, *, until, every=None):
    """Local SGD with error feedback, dropout and a random draw; continues where ``folder`` says."""
    torch.manual_seed(place.rank)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    averaging = PeriodicAveraging(model, optimizer, schedule=3, operator=ErrorFeedback(TopK(k=4)), key=Key(1))
    draw = torch.Generator().manual_seed(10 + place.rank)
    checkpoint = Checkpoint(
        folder, model=model, optimizer=optimizer, averaging=averaging, draw=draw, torch=torch.default_generator
    )
    start = checkpoint.load()
    for step in range(start, until):
        optimizer.zero_grad()
        model(torch.randn(8, 6, generator=draw)).square().sum().backward()
        optimizer.step()
        averaging.step()
        if every and (step + 1) % every == 0:
            checkpoint.save(step + 1)
    return start, flat(list(model.parameters())).tolist()


@pytest.mark.usefixtures("_imported_and_compiled_before_the_processes_fork")
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(tmp_path):
    straight = reports(lambda place: training(place, tmp_path / "a", until=20))
    reports(lambda place: training(place, tmp_path / "b", until=13, every=5))
    resumed = reports(lambda place: training(place, tmp_path / "b", until=20))

    assert [start for start, _ in resumed] == [10, 10]
    assert [end for _, end in resumed] == [end for _, end in straight]


def ddp_training(place, folder, *, until, every=None):
    """The same with the gradients' messages of a communication hook, whose feedback has a state on every rank."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    model = DistributedDataParallel(network)
    hook = register(model, ErrorFeedback(TopK(k=1)), scope="layer", key=Key(1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    draw = torch.Generator().manual_seed(10 + place.rank)
    checkpoint = Checkpoint(folder, network=network, hook=hook, optimizer=optimizer, draw=draw)
    start = checkpoint.load()
    for step in range(start, until):
        optimizer.zero_grad()
        model(torch.randn(8, 6, generator=draw)).square().sum().backward()
        optimizer.step()
        if every and (step + 1) % every == 0:
            checkpoint.save(step + 1)
    return start, flat(list(network.parameters())).tolist(), hook.payload_bytes


@pytest.mark.usefixtures("_imported_and_compiled_before_the_processes_fork")
def test_a_resumed_run_with_a_communication_hook_is_the_uninterrupted_one_bit_for_bit(tmp_path):
    straight = reports(lambda place: ddp_training(place, tmp_path / "a", until=12))
    reports(lambda place: ddp_training(place, tmp_path / "b", until=8, every=5))
    resumed = reports(lambda place: ddp_training(place, tmp_path / "b", until=12))

    assert [start for start, *_ in resumed] == [5, 5]
    assert [end for _, *end in resumed] == [end for _, *end in straight]


def test_a_rank_killed_while_it_writes_leaves_the_older_checkpoint_to_all(tmp_path):
    def work(place, emit):
        number = Number(1)
        checkpoint = Checkpoint(tmp_path, number=number)
        checkpoint.save(1)
        number.value = 2
        if place.rank == 1:
            os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # the file is written, but not renamed
        checkpoint.save(2)

    with pytest.raises(RunFailed, match="rank 1 was killed by SIGKILL"):
        list(run_ranks(work, processes=2, hang_timeout_s=30))
    left = names(tmp_path)
    assert "rank-1-of-2.tmp" in left
    assert {"step-1-rank-0-of-2.pt", "step-1-rank-1-of-2.pt"} <= set(left)
    assert "step-2-rank-1-of-2.pt" not in left

    def resume(place):
        number = Number()
        return Checkpoint(tmp_path, number=number).load(), number.value

    assert reports(resume) == [(1, 1), (1, 1)]
    assert names(tmp_path) == ["step-1-rank-0-of-2.pt", "step-1-rank-1-of-2.pt"], "nothing stale is left"


def test_a_full_disk_is_one_line_on_every_rank_and_the_older_checkpoint_stays(tmp_path):
    def work(place):
        part = torch.nn.Linear(10, 10)
        checkpoint = Checkpoint(tmp_path, part=part)
        checkpoint.save(1)
        if place.rank == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))  # in bytes
        words = complaint(lambda: checkpoint.save(2))
        return words, checkpoint.load()

    path = tmp_path / "step-2-rank-1-of-2.pt"
    assert reports(work) == [(f"rank 1 cannot write {path}: File too large", 1)] * 2
    assert names(tmp_path) == ["step-1-rank-0-of-2.pt", "step-1-rank-1-of-2.pt"]


def test_a_folder_that_cannot_be_written_is_one_line_on_every_rank(tmp_path):
    (tmp_path / "file").write_text("")
    blocked = tmp_path / "file" / "folder"

    words = reports(lambda place: complaint(lambda: Checkpoint(blocked, part=Number()).save(1)))

    assert words == [f"rank 0 cannot write {blocked}/step-1-rank-0-of-2.pt: Not a directory"] * 2


def test_a_folder_without_permission_is_one_line_on_every_rank():
    def work(place):
        if os.geteuid() == 0:
            os.seteuid(NOBODY)  # root may write anywhere
        return complaint(lambda: Checkpoint(folder, part=Number()).save(1))

    with tempfile.TemporaryDirectory() as folder:  # other users cannot enter pytest's folders
        os.chmod(folder, 0o555)
        assert reports(work) == [f"rank 0 cannot write {folder}/step-1-rank-0-of-2.pt: Permission denied"] * 2
        os.chmod(folder, 0o700)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "rubbish"])
def test_a_damaged_file_is_one_line_on_every_rank(tmp_path, damage):
    reports(lambda place: Checkpoint(tmp_path, part=torch.nn.Linear(30, 30)).save(7))
    path = tmp_path / "step-7-rank-1-of-2.pt"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes({"cut": content[:-500], "flipped": content, "empty": b"", "rubbish": b"x" * 999}[damage])

    words = reports(lambda place: complaint(Checkpoint(tmp_path, part=torch.nn.Linear(30, 30)).load))

    assert words[0] == words[1]
    assert words[0].startswith(f"rank 1 cannot read {path}, it is damaged (")
    assert words[0].endswith("): delete it to start again")


def test_a_damaged_file_costs_the_steps_since_the_one_before_and_is_named(tmp_path):
    def save(place):
        number = Number()
        checkpoint = Checkpoint(tmp_path, number=number)
        for number.value in (1, 2, 3, 4):
            checkpoint.save(number.value)

    def load(place):
        number, round_losses = Number(), []
        module.log.warning = lambda words, *values: round_losses.append(words % values)
        return Checkpoint(tmp_path, number=number).load(), number.value, round_losses

    reports(save)
    assert names(tmp_path) == [f"step-{s}-rank-{r}-of-2.pt" for s in (2, 3, 4) for r in (0, 1)]
    (tmp_path / "step-4-rank-1-of-2.pt").write_bytes(b"")
    (tmp_path / "step-3-rank-0-of-2.pt").write_bytes(b"rubbish")

    (first, second) = reports(load)
    assert first[:2] == second[:2] == (2, 2)
    (words,) = first[2]
    assert words.startswith(f"rank 1 cannot read {tmp_path}/step-4-rank-1-of-2.pt, it is damaged (")
    assert words.endswith("; resuming from step 2 instead")
    assert second[2] == [], "said once"

    for rank in (0, 1):
        (tmp_path / f"step-2-rank-{rank}-of-2.pt").write_bytes(b"")
    (words, _) = reports(lambda place: complaint(Checkpoint(tmp_path, number=Number()).load))
    assert "step-4-rank-1-of-2.pt, it is damaged (" in words


@pytest.mark.parametrize(("keep", "left"), [(1, [9]), (2, [8, 9]), (5, [6, 7, 8, 9])])
def test_as_many_checkpoints_are_kept_as_was_said_and_none_of_a_later_step(tmp_path, keep, left):
    def work(place):
        Checkpoint(tmp_path, part=Number()).save(12)  # of a run that went further
        checkpoint = Checkpoint(tmp_path, keep=keep, part=Number())
        for step in (6, 7, 8, 9):
            checkpoint.save(step)
        with pytest.raises(ValueError, match="keep must be >= 1; got keep = 0"):
            Checkpoint(tmp_path, keep=0)

    reports(work, processes=1)
    assert names(tmp_path) == [f"step-{step}-rank-0-of-1.pt" for step in left]


def test_checkpoints_of_another_run_are_refused(tmp_path):
    def work(place):
        Checkpoint(tmp_path, part=torch.nn.Linear(2, 2)).save(1)
        return (
            complaint(Checkpoint(tmp_path, part=torch.nn.Linear(3, 2)).load),
            complaint(Checkpoint(tmp_path, other=torch.nn.Linear(2, 2)).load),
        )

    shape, parts = reports(work)[0]
    assert "step-1-rank-0-of-2.pt does not fit part of this run: Error(s) in loading state_dict" in shape
    assert "has ['part']; this run needs ['other']" in parts

    (size,) = reports(lambda place: complaint(Checkpoint(tmp_path, part=Number()).load), processes=1)
    assert f"finds checkpoints of 2 ranks in {tmp_path}, but this run has 1" in size


def test_a_checkpoint_of_other_settings_is_one_sentence_without_a_chain(tmp_path):
    def averaging(levels):
        return PeriodicAveraging(torch.nn.Linear(2, 2), schedule=1, operator=QSGD(levels))

    def work(place):
        Checkpoint(tmp_path, averaging=averaging(4)).save(1)
        with pytest.raises(CheckpointError, match="differs in operator: give the same operator") as caught:
            Checkpoint(tmp_path, averaging=averaging(8)).load()
        return "".join(traceback.format_exception(caught.value)).count("Traceback")

    assert reports(work, processes=1) == [1]


def test_ranks_without_a_common_step_are_refused(tmp_path):
    reports(lambda place: Checkpoint(tmp_path, part=Number()).save(5))
    (tmp_path / "step-5-rank-1-of-2.pt").unlink()

    words = reports(lambda place: complaint(Checkpoint(tmp_path, part=Number()).load))

    assert words[0] == words[1]
    assert f"finds no step in {tmp_path} that all ranks have (rank 0: [5]; rank 1: none)" in words[0]


def test_a_part_that_fails_on_one_rank_is_known_to_all(tmp_path):
    class Moody(Number):
        def state_dict(self):
            if dist.get_rank() == 1:
                raise KeyError("mauve")
            return super().state_dict()

    began = time.monotonic()
    words = reports(lambda place: complaint(lambda: Checkpoint(tmp_path, part=Moody()).save(1)))

    assert words == ["rank 1 fails: KeyError: 'mauve'"] * 2
    assert names(tmp_path) == []
    assert time.monotonic() - began < 30


class Colour(enum.Enum):
    RED = 1


class Extra:
    """A part of a run with any state."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


REFUSED = {
    "scalar": ({"epoch": np.int64(3)}, "extra.epoch of type numpy.int64"),
    "nested": ({"a b": [1, {"x": (np.float32(1),)}]}, "extra['a b'][1]['x'][0] of type numpy.float32"),
    "array": ({"seen": np.arange(3)}, "extra.seen of type numpy.ndarray"),
    "enumeration": ({"c": Colour.RED}, f"extra.c of type {Colour.__module__}.Colour"),
    "path": ({"where": Path("a")}, "extra.where of type pathlib.PosixPath"),
    "function": ({"rule": lambda step: step}, "extra.rule of type builtins.function"),
    "lock": ({"lock": threading.Lock()}, "extra.lock of type _thread.lock"),
    "class": ([1, Extra(1)], f"extra[1] of type {Extra.__module__}.Extra"),
    "key": ({"by": {np.int64(2): 1}}, "the key np.int64(2) of extra.by of type numpy.int64"),
    "bare": (np.float64(2), "extra of type numpy.float64"),
}


def test_an_entry_that_could_not_be_loaded_is_refused_by_name_at_the_first_save_on_all_ranks(tmp_path):
    def work(place):
        said = {}
        for name, (state, _) in REFUSED.items():
            own = state if place.rank == 1 else {"epoch": 3}  # the first rank has nothing to refuse
            said[name] = complaint(lambda own=own, name=name: Checkpoint(tmp_path / name, extra=Extra(own)).save(1))
            said[name, "load"] = Checkpoint(tmp_path / name, extra=Extra(None)).load()
        return said

    first, second = reports(work)
    assert first == second
    for name, (_, entry) in REFUSED.items():
        assert first[name] == (
            f"rank 1 cannot save {entry}, which weights_only=True does not load: make it a tensor or a plain value"
        )
        assert first[name, "load"] == 0
    assert not [file for folder in tmp_path.iterdir() for file in folder.iterdir()]


def test_what_can_be_saved_comes_back_and_is_read_back_once(tmp_path):
    state = {"a": [1, 2.5, None, True, "x", b"y"], "b": {(1, 2): torch.arange(3)}, 3: OrderedDict(c=torch.ones(2, 1).T)}

    def work(place):
        loads, load = [], torch.load
        torch.load = lambda *arguments, **keywords: loads.append(1) or load(*arguments, **keywords)
        optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))], lr=0.5)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        checkpoint = Checkpoint(tmp_path, extra=Extra(state), optimizer=optimizer, schedule=schedule)
        for step in range(1, 4):
            checkpoint.save(step)
        torch.load = load
        resumed = Extra(None)
        Checkpoint(tmp_path, extra=resumed, optimizer=optimizer, schedule=schedule).load()
        equal = repr(resumed.state) == repr(state)
        return len(loads), equal

    assert reports(work, 1) == [(1, True)]


def other_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "not a checkpoint")


def flipped(path):
    content = bytearray(path.read_bytes())
    content[content.index(b"value") + 1] ^= 4
    path.write_bytes(content)


def folder_instead(path):
    path.unlink()
    path.mkdir()


UNUSABLE = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "is damaged"),
    "empty": (lambda path: path.write_bytes(b""), "is damaged"),
    "flipped": (flipped, "is damaged"),
    "folder": (folder_instead, "is damaged"),
    "text": (lambda path: path.write_text("no zip"), "is damaged"),
    "numpy": (
        lambda path: torch.save({"step": 1, "parts": {"n": np.float64(1)}}, path),
        "scalar is not loaded by weig",
    ),
    "own class": (lambda path: torch.save({"step": 1, "parts": Extra(1)}, path), "Extra is not loaded by weights_only"),
    "bare model": (lambda path: torch.save({"weight": torch.ones(2)}, path), "is no checkpoint of this version"),
    "zip": (other_zip, "is no checkpoint"),
    "other parts": (
        lambda path: torch.save({"step": 1, "parts": {"n": {}}}, path),
        "has ['n']; this run needs ['number']",
    ),
}


def test_only_damaged_files_are_called_damaged(tmp_path):
    def work(place):
        said = {}
        for name, (act, _) in UNUSABLE.items():
            checkpoint = Checkpoint(tmp_path / name, number=Number())
            checkpoint.save(1)
            if place.rank == 1:
                act(checkpoint.path(1))
            dist.barrier()
            said[name] = complaint(Checkpoint(tmp_path / name, number=Number()).load)
        return said

    first, second = reports(work)
    assert first == second
    for name, (_, words) in UNUSABLE.items():
        assert words in first[name], first[name]
        assert ("it is damaged" in first[name]) == (words == "is damaged"), first[name]
