"""Sharded models: every rank averages its shards with its peers, as models of their own, bit for bit."""

import datetime
import importlib
import io
import multiprocessing
import os
import re
import signal

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from bounds.schedules import PostLocal
from gpu_validation import SGD, Nesterov, PeriodicAveraging, SimulatedWorkers
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import Uneven
from gpu_validation.averaging.merge.rules import Blocking, Corrected
from operators import QSGD, TCDQ, ErrorFeedback, Key, ScaledSign
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(200)
INNER, TAU, STEPS, RATE, KEY = 2, 4, 11, 0.1, Key(7)
CASES = {
    "whole models": {},
    "QSGD": {"operator": QSGD(4)},
    "TCDQ": {"operator": TCDQ.for_bits(2.0)},
    "error feedback": {"operator": ErrorFeedback(ScaledSign())},
    "two shots": {"exchange": TwoShot(QSGD(4))},
    "Nesterov": {"outer": Nesterov(0.7, 0.5)},
    "Nesterov with QSGD": {"outer": Nesterov(0.7, 0.5), "operator": QSGD(4)},
    "corrected": {"merge": Corrected(delay=2)},
    "corrected with QSGD": {"merge": Corrected(delay=2), "operator": QSGD(4), "outer": Nesterov(0.7, 0.5)},
    "fragments": {"merge": Corrected(delay=1, fragments=2), "operator": QSGD(4)},
    "modules": {"merge": Blocking(fragments=["2", "0"]), "outer": [SGD(0.7), Nesterov(0.5, 0.5)]},
}


@pytest.fixture(scope="module", autouse=True)
def _imported_before_the_processes_fork():
    for module in ("torch.distributed.fsdp", "torch.distributed.tensor", "torch.distributed.device_mesh"):
        importlib.import_module(module)


def mesh_of(outer):
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", (outer, INNER), mesh_dim_names=("outer", "inner"))


def sharded_model(mesh):
    """Layers whose shards differ in length: 3 and 2 rows of the first, 2 and 1 of the last.

    FSDP2 leaves the last layer, which the model itself shards, gathered after a forward pass.
    """
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    fully_shard(model[0], mesh=mesh["inner"])
    return fully_shard(model, mesh=mesh["inner"])


def local_step(model, optimizer, rank, step):
    batch = torch.randn(6, 7, generator=torch.Generator().manual_seed(1000 * step + rank))
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


def shards(model):
    with torch.no_grad():
        return {name: p.to_local().clone() for name, p in model.named_parameters()}


def gradients(model):
    return {name: p.grad.to_local().clone() for name, p in model.named_parameters()}


def run(place, mesh, settings, steps=STEPS):
    """The shards at the start and after every step, the gradients of every step, and the bytes of this rank."""
    model = sharded_model(mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    averaging = PeriodicAveraging(
        model, optimizer, schedule=TAU, process_group=mesh.get_group("outer"), key=KEY, **settings
    )
    path, of_steps, bits = [shards(model)], [], []
    for step in range(steps):
        local_step(model, optimizer, place.rank, step)
        of_steps.append(gradients(model))
        ended = averaging.step()
        bits += [] if ended is None else [ended.bits]
        path.append(shards(model))
    averaging.average()
    return (
        [*path, shards(model)],
        of_steps,
        bits,
        averaging.transport.payload_bytes,
        averaging.transport.predicted_bytes,
    )


class Shard(torch.nn.Module):
    """The shards of one rank as the parameters of a model; ``0.weight`` is in a module of the name ``0``."""

    def __init__(self, parts):
        super().__init__()
        for name, part in parts.items():
            module, _, entry = name.partition(".")
            if module not in self._modules:
                self.add_module(module, torch.nn.Module())
            self._modules[module].register_parameter(entry, torch.nn.Parameter(torch.from_numpy(part.copy())))


def unsharded(reports, inner, settings):
    """The path of every outer rank's shard ``inner`` as a whole model: the same gradients, averaged in one process."""
    models = [Shard(path[0]) for path, *_ in reports]
    optimizers = [torch.optim.SGD(model.parameters(), lr=RATE) for model in models]
    key = KEY.fold_in(inner) if inner else KEY
    averaging = SimulatedWorkers(models, optimizers, schedule=TAU, key=key, **settings)
    for step in range(STEPS):
        for model, optimizer, (_, of_steps, *_) in zip(models, optimizers, reports, strict=True):
            for name, p in model.named_parameters():
                p.grad = torch.from_numpy(of_steps[step][name].copy())
            optimizer.step()
        averaging.step()
        for model, (path, *_) in zip(models, reports, strict=True):
            for name, p in model.named_parameters():
                np.testing.assert_array_equal(p.detach().numpy(), path[step + 1][name], err_msg=f"{name}, step {step}")
    averaging.average()
    for model, (path, *_) in zip(models, reports, strict=True):
        for name, p in model.named_parameters():
            np.testing.assert_array_equal(p.detach().numpy(), path[-1][name], err_msg=name)


@pytest.mark.every(2)
@pytest.mark.parametrize("outer", [2, 3])
def test_shards_are_averaged_as_models_of_their_own_and_every_byte_is_predicted(outer):
    def work(place):
        mesh = mesh_of(outer)
        return [run(place, mesh, settings) for settings in CASES.values()]

    reports = in_ranks(work, processes=INNER * outer)
    for i, (name, settings) in enumerate(CASES.items()):
        for inner in range(INNER):
            peers = [reports[outer_rank * INNER + inner][i] for outer_rank in range(outer)]
            unsharded(peers, inner, settings)
            sent, predicted = zip(*(peer[3:] for peer in peers), strict=True)
            assert sum(sent) == predicted[0] > 0, name
            assert len(set(predicted)) == 1, name
            d = sum(part.size for part in peers[0][0][0].values())
            if not {"operator", "exchange", "merge"} & set(settings):
                assert set(peers[0][2]) == {(32 * d,) * outer}, "a rank sends its shard only"


def test_whole_models_are_those_of_training_without_shards():
    """Replicas whose gradient is the mean of two batches, averaged by hand in float64."""

    def work(place):
        mesh = mesh_of(2)
        model = sharded_model(mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        with torch.no_grad():
            model(torch.ones(1, 7))  # leaves parameters gathered, which the averaging must undo
        averaging = PeriodicAveraging(model, optimizer, schedule=TAU, process_group=mesh.get_group("outer"))
        for step in range(2 * TAU):
            local_step(model, optimizer, place.rank, step)
            averaging.step()
            with torch.no_grad():
                model(torch.ones(1, 7))
        model.reshard()
        return {name: p.full_tensor() for name, p in model.named_parameters()}

    replicas = []
    for _ in range(2):
        torch.manual_seed(3)
        replicas.append(torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)).double())
    for step in range(2 * TAU):
        for outer, model in enumerate(replicas):
            batches = [
                torch.randn(6, 7, generator=torch.Generator().manual_seed(1000 * step + 2 * outer + inner))
                for inner in range(INNER)
            ]
            loss = sum(model(batch.double()).square().mean() for batch in batches) / INNER
            for p, gradient in zip(model.parameters(), torch.autograd.grad(loss, [*model.parameters()]), strict=True):
                p.data -= RATE * gradient
        if step % TAU == TAU - 1:
            for parameters in zip(*(model.parameters() for model in replicas), strict=True):
                mean = torch.stack([p.data for p in parameters]).mean(0)
                for p in parameters:
                    p.data.copy_(mean)
    for found in in_ranks(work, processes=4):
        for name, p in replicas[0].named_parameters():
            np.testing.assert_allclose(found[name], p.detach().numpy(), rtol=0, atol=1e-6)


# -- restart -----------------------------------------------------------------------------------------------------
def packed(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def resumed(place, mesh, settings, stop, folder):
    """The shards at the end of a run that is saved by torch.distributed.checkpoint, and of its continuation."""

    def parts():
        model = sharded_model(mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
        group = mesh.get_group("outer")
        return (
            model,
            optimizer,
            PeriodicAveraging(model, optimizer, schedule=TAU, process_group=group, key=KEY, **settings),
        )

    def steps(model, optimizer, averaging, first, last):
        for step in range(first, last):
            local_step(model, optimizer, place.rank, step)
            averaging.step()

    def state_of(model, optimizer, averaging):
        model_state, optimizer_state = get_state_dict(model, optimizer)
        own = {"averaging": packed(averaging.state_dict()), "model": model_state, "optimizer": optimizer_state}
        return {str(place.rank // INNER): own | {"averaging": {str(place.rank % INNER): own["averaging"]}}}

    first = parts()
    steps(*first, 0, stop)
    outer, inner = (str(part) for part in divmod(place.rank, INNER))
    dcp.save(state_of(*first), checkpoint_id=folder)
    steps(*first, stop, STEPS)

    model, optimizer, averaging = parts()
    state = state_of(model, optimizer, averaging)
    dcp.load(state, checkpoint_id=folder)
    own = state[outer]
    set_state_dict(model, optimizer, model_state_dict=own["model"], optim_state_dict=own["optimizer"])
    averaging.load_state_dict(torch.load(io.BytesIO(own["averaging"][inner]), weights_only=True))
    steps(model, optimizer, averaging, stop, STEPS)
    return shards(first[0]), shards(model)


RESUMED = ("error feedback", "Nesterov with QSGD", "corrected with QSGD", "fragments")


@pytest.mark.thorough
def test_runs_saved_by_torchs_distributed_checkpoint_resume_bit_for_bit(tmp_path):
    def work(place):
        mesh = mesh_of(2)
        return [
            resumed(place, mesh, CASES[name], stop, tmp_path / f"{name} {stop}") for name in RESUMED for stop in (4, 7)
        ]

    for found in in_ranks(work, processes=4):
        for undisturbed, continued in found:
            for name, shard in undisturbed.items():
                np.testing.assert_array_equal(continued[name], shard)


# -- refusals ----------------------------------------------------------------------------------------------------
def test_what_shards_cannot_do_is_refused_by_name():
    def words_of(act):
        try:
            act()
        except (TypeError, ValueError) as refused:
            return f"{type(refused).__name__}: {refused}"
        return ""

    def work(place):
        from torch.distributed.tensor import DTensor, Partial

        mesh = mesh_of(2)
        outer, inner = mesh.get_group("outer"), mesh.get_group("inner")
        model = sharded_model(mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

        def made(model=model, group=outer, **settings):
            return PeriodicAveraging(model, optimizer, process_group=group, **settings)

        partial = torch.nn.Linear(4, 4)
        partial.weight = torch.nn.Parameter(DTensor.from_local(torch.ones(4, 4), mesh["inner"], [Partial()]))
        mixed = torch.nn.Sequential(model, torch.nn.Linear(3, 2))
        return [
            words_of(lambda: made(group=None)),
            words_of(lambda: made(group=inner)),
            words_of(lambda: made(schedule=PostLocal(4))),
            words_of(lambda: made(merge=Blocking(optimizer_state="average"))),
            words_of(lambda: made(membership=Uneven())),
            words_of(lambda: PeriodicAveraging(partial, process_group=outer)),
            words_of(lambda: made(model=mixed, operator=QSGD(4))),
            words_of(lambda: made(model=mixed)),
            words_of(lambda: SimulatedWorkers([model])),
        ]

    expected = [
        "ValueError: process_group must have one rank of the mesh over which 0.weight is sharded; it has ranks",
        "ValueError: process_group must have one rank of the mesh over which 0.weight is sharded; it has ranks",
        "ValueError: a sharded model does not work with schedule = PostLocal",
        'ValueError: a sharded model does not work with optimizer_state = "average"',
        "ValueError: a sharded model does not work with uneven",
        "TypeError: a sharded parameter must have the placements Shard or Replicate; weight has P",
        "ValueError: a sharded model does not work with operator = QSGD(levels=4",
        "",
        "TypeError: 0.weight is sharded over the ranks (DTensor)",
    ]
    for found in in_ranks(work, processes=4):
        for sentence, start in zip(found, expected, strict=True):
            assert sentence.startswith(start), sentence
            assert bool(sentence) == bool(start)


def test_peers_with_other_shards_are_refused_on_all_ranks():
    """Ranks 0 and 3 are in different replicas but have different shards."""

    def work(place):
        model = sharded_model(mesh_of(2))
        crossed = [dist.new_group(ranks) for ranks in ([0, 3], [1, 2])]
        with pytest.raises(ValueError, match="all ranks must hold the same tensors") as caught:
            PeriodicAveraging(model, process_group=crossed[place.rank in (1, 2)])
        return str(caught.value)

    pattern = re.compile(
        "0.weight is .*, shard [01] of 2 along dimension 0 .* shard [01] of 2 .* average the same shards$"
    )
    assert all(map(pattern.search, in_ranks(work, processes=4)))


@pytest.mark.thorough
def test_a_shard_that_is_not_finite_is_reported_and_recovered_by_its_peers_alone():
    """The ranks of the other shard have averaged; all train on, and peers hold equal shards."""

    def work(place):
        mesh, found = mesh_of(2), []
        for name in ("whole models", "QSGD", "error feedback", "Nesterov with QSGD"):
            model = sharded_model(mesh)
            optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
            averaging = PeriodicAveraging(
                model, optimizer, schedule=TAU, process_group=mesh.get_group("outer"), key=KEY, **CASES[name]
            )
            words = ""
            for step in range(2 * TAU):
                local_step(model, optimizer, place.rank, step)
                if step == TAU - 1 and place.rank == 0:
                    with torch.no_grad():
                        model[0].weight.to_local()[0, 0] = torch.nan
                try:
                    averaging.step()
                except ValueError as error:
                    words = str(error)
                    averaging.recover()
            averaging.average()
            found.append((words, shards(model)))
        return found

    reports = in_ranks(work, processes=4)
    for cases in zip(*reports, strict=True):
        assert ["rank 0" in words and "entry 0 of 0.weight" in words for words, _ in cases] == [
            True,
            False,
            True,
            False,
        ]
        for inner in range(INNER):
            (_, first), (_, second) = cases[inner], cases[inner + INNER]
            for name, part in first.items():
                assert np.isfinite(part).all()
                np.testing.assert_array_equal(part, second[name])


@pytest.mark.thorough
def test_a_parameter_with_fewer_rows_than_ranks_has_empty_shards():
    def work(place):
        from torch.distributed.fsdp import fully_shard

        mesh, found = mesh_of(2), []
        for name, settings in CASES.items():
            if name == "modules":  # a module without rows on some rank is refused
                continue
            torch.manual_seed(3)
            model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
            fully_shard(model, mesh=mesh["inner"])
            optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
            averaging = PeriodicAveraging(
                model, optimizer, schedule=TAU, process_group=mesh.get_group("outer"), key=KEY, **settings
            )
            for step in range(2 * TAU + 1):
                local_step(model, optimizer, place.rank, step)
                averaging.step()
            averaging.average()
            found.append(shards(model))
        return found

    for parts in zip(*in_ranks(work, processes=4), strict=True):
        assert [part["2.weight"].shape[0] for part in parts] == [1, 0, 1, 0]
        for inner in range(INNER):
            for name, part in parts[inner].items():
                np.testing.assert_array_equal(part, parts[inner + INNER][name])


# -- a rank that dies --------------------------------------------------------------------------------------------
KILLS = [(victim, step, overlap) for victim in (0, 3) for step in (0, TAU - 1, TAU + 1) for overlap in (False, True)]


def train_until_a_rank_dies(rank, folder, *, victim, fatal_step, settings):
    """One process of four, which nothing supervises; it writes what it notices."""
    limit = datetime.timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=4, timeout=limit)
    mesh = mesh_of(2)
    model = sharded_model(mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    averaging = PeriodicAveraging(model, optimizer, schedule=TAU, process_group=mesh.get_group("outer"), **settings)
    try:
        for step in range(100):
            if (rank, step) == (victim, fatal_step):
                os.kill(os.getpid(), signal.SIGKILL)
            local_step(model, optimizer, rank, step)
            averaging.step()
    except RuntimeError as error:
        (folder / f"rank {rank}").write_text(f"{step} {error}")
    os._exit(1)


@pytest.mark.thorough
@pytest.mark.parametrize(("victim", "fatal_step", "overlap"), KILLS)
def test_all_other_ranks_notice_a_rank_that_dies(victim, fatal_step, overlap, tmp_path):
    settings = {"operator": QSGD(4)} | ({"merge": Corrected(delay=2)} if overlap else {})
    arguments = {"victim": victim, "fatal_step": fatal_step, "settings": settings}
    fork = multiprocessing.get_context("fork")
    ranks = [
        fork.Process(target=train_until_a_rank_dies, args=(rank, tmp_path), kwargs=arguments, daemon=True)
        for rank in range(4)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(45)
    codes = [process.exitcode for process in ranks]
    for process in ranks:
        process.kill()
    assert codes == [-signal.SIGKILL if rank == victim else 1 for rank in range(4)]
    for rank in set(range(4)) - {victim}:
        noticed_at = int((tmp_path / f"rank {rank}").read_text().split()[0])
        assert fatal_step - 1 <= noticed_at <= fatal_step + 2 * TAU  # a peer may still be in the step before
