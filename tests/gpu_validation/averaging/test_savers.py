"""Files of other libraries after an averaging: they hold the model bit for bit, and no more than before it."""

import importlib
import io

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.adapters.diloco import DiLoCo
from gpu_validation.averaging.merge.rules import Corrected
from gpu_validation.averaging.outer import Nesterov
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import QSGD, ErrorFeedback, Key, TopK
from operators.ddp import register
from tests.gpu_validation.adapters.runs import as_torchrun
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(180)


class Network(torch.nn.Module):
    """A body and a head, embeddings that may be tied, a counter and statistics."""

    def __init__(self, seed=0, tied=False):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding, self.out = torch.nn.Embedding(11, 8), torch.nn.Linear(8, 11, bias=False)
        if tied:
            self.out.weight = self.embedding.weight
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 8))
        self.head = torch.nn.Linear(8, 3)
        if tied:
            self.image = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.out(self.body(self.embedding(x))), self.head(self.body(self.embedding(x)))


def trained(model, amount):
    with torch.no_grad():
        for p in model.parameters():
            p += amount * torch.randn_like(p)


def averaged(tied):
    """A model after averagings of two simulated workers, by movements and by whole models."""
    models = [Network(tied=tied) for _ in range(2)]
    for settings in ({"operator": QSGD(levels=4), "key": Key(1)}, {}):
        workers = SimulatedWorkers(models, schedule=1, **settings)
        for model in models:
            trained(model, 0.1)
        workers.step()
    return models[0]


def equal(one, other):
    one, other = one.state_dict(), other.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def size(state):
    file = io.BytesIO()
    torch.save(state, file)
    return file.tell()


@pytest.fixture(params=[False, True], ids=["apart", "tied"])
def tied(request):
    return request.param


def test_torch_saves_a_model_and_its_parts_bit_for_bit_and_no_more(tied):
    model, twin, plain = averaged(tied), Network(1, tied), Network(0, tied)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    twin.load_state_dict(torch.load(file))

    assert equal(model, twin)
    assert (twin.out.weight is twin.embedding.weight) == tied
    for part, _ in model.named_children():
        assert size(getattr(model, part).state_dict()) == size(getattr(plain, part).state_dict())
    assert size(model.state_dict()) == size(plain.state_dict())


def test_safetensors_saves_a_model_bit_for_bit(tied, tmp_path):
    from safetensors.torch import load_file, load_model, save_file, save_model

    model, twin = averaged(tied), Network(1, tied)
    save_model(model, str(tmp_path / "model"))
    load_model(twin, str(tmp_path / "model"))
    part = model.body if tied else model
    save_file(part.state_dict(), str(tmp_path / "part"))

    assert equal(model, twin)
    loaded = load_file(tmp_path / "part")
    assert all(torch.equal(loaded[name], value) for name, value in part.state_dict().items())


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
def test_a_distributed_checkpoint_of_one_process_is_bit_exact(tied, tmp_path):
    model, twin = averaged(tied), Network(1, tied)
    dcp.save({"model": model.state_dict()}, checkpoint_id=tmp_path, no_dist=True)
    state = {"model": twin.state_dict()}
    dcp.load(state, checkpoint_id=tmp_path, no_dist=True)

    assert equal(model, twin)


def in_accelerate(place, folder):
    """Whether what accelerate saves after a ``LocalSGD`` is the model, by state and by model."""
    from accelerate import Accelerator
    from safetensors.torch import load_file

    from gpu_validation.adapters.accelerated import LocalSGD

    accelerator, model = Accelerator(cpu=True), Network()
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    with LocalSGD(accelerator=accelerator, model=model, local_sgd_steps=2) as local_sgd:
        for step in range(4):
            torch.manual_seed(10 * step + place.rank)
            optimizer.zero_grad()
            accelerator.backward(sum(out.square().mean() for out in model(torch.randint(11, (6,)))))
            optimizer.step()
            local_sgd.step()
    inner = accelerator.unwrap_model(model)
    right = {name: value.clone() for name, value in inner.state_dict().items()}
    accelerator.save_state(str(folder / "state"))
    accelerator.save_model(model, str(folder / "model"))
    accelerator.wait_for_everyone()
    trained(inner, 1.0)
    accelerator.load_state(str(folder / "state"))
    restored = all(torch.equal(right[name], value) for name, value in inner.state_dict().items())
    found = load_file(folder / "model" / "model.safetensors")
    whole = found.keys() == right.keys() and all(torch.equal(right[name], found[name]) for name in found)
    return restored, whole


def in_transformers(place, folder):
    """Whether a pretrained model is saved and loaded bit for bit after DiLoCo."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=17, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with DiLoCo(model, optimizer, sync_every=1, outer=Nesterov(0.7, 0.9)):
        for _ in range(2):
            optimizer.zero_grad()
            tokens = torch.randint(17, (2, 8), generator=torch.Generator().manual_seed(place.rank))
            model(input_ids=tokens, labels=tokens).loss.backward()
            optimizer.step()
    model.save_pretrained(folder, is_main_process=place.rank == 0)
    torch.distributed.barrier()
    return equal(model, GPT2LMHeadModel.from_pretrained(folder))


def in_distributed_checkpoint(place, folder):
    """Whether all ranks load what they have saved together."""
    model, twin = Network(), Network(1)
    averaging = PeriodicAveraging(model, schedule=1, merge=Corrected())
    for _ in range(3):
        torch.manual_seed(place.rank)
        trained(model, 0.1)
        averaging.step()
    averaging.average()
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    state = {"model": twin.state_dict()}
    dcp.load(state, checkpoint_id=folder)
    return equal(model, twin)


@pytest.mark.thorough
def test_two_ranks_save_and_load_by_other_libraries_bit_for_bit(tmp_path):
    for library in ("accelerate", "transformers.models.gpt2.modeling_gpt2"):
        importlib.import_module(library)  # once, before the ranks fork

    def work(place):
        as_torchrun(place)
        return {
            "torch.distributed.checkpoint": in_distributed_checkpoint(place, tmp_path / "checkpoint"),
            "accelerate": in_accelerate(place, tmp_path / "accelerate"),
            "transformers": in_transformers(place, tmp_path / "pretrained"),
        }

    for found in in_ranks(work, processes=2):
        assert found == {"torch.distributed.checkpoint": True, "accelerate": (True, True), "transformers": True}


def with_hook(place, model, wrapped, optimizer):
    """Train two steps whose gradients a hook compresses; return the hook."""
    hook = register(wrapped, TopK(fraction=0.25), feedback=ErrorFeedback, scope="layer", key=Key(1))
    for step in range(2):
        torch.manual_seed(10 * step + place.rank)
        optimizer.zero_grad()
        sum(out.square().mean() for out in wrapped(torch.randint(11, (6,)))).backward()
        optimizer.step()
    return hook


def hooked_in_torch(place, folder):
    """Whether torch, safetensors and distributed checkpoints hold a model with a hook, and the model goes on."""
    from safetensors.torch import load_model, save_model

    model = Network()
    wrapped = DistributedDataParallel(model)
    hook = with_hook(place, model, wrapped, torch.optim.SGD(model.parameters(), lr=0.1))
    twins = [Network(1) for _ in range(3)]
    file = io.BytesIO()
    torch.save({"model": wrapped.state_dict(), "hook": hook.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    twin = DistributedDataParallel(twins[0])
    twin.load_state_dict(saved["model"])
    again = register(twin, TopK(fraction=0.25), feedback=ErrorFeedback, scope="layer", key=Key(1))
    again.load_state_dict(saved["hook"])
    save_model(model, str(folder.parent / f"safetensors-{place.rank}"))
    load_model(twins[1], str(folder.parent / f"safetensors-{place.rank}"))
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    state = {"model": twins[2].state_dict()}
    dcp.load(state, checkpoint_id=folder)
    # Statistics are each rank's own, and the checkpoint keeps those of one.
    of_all = zip(model.parameters(), twins.pop().parameters(), strict=True)
    found = [*(equal(model, each) for each in twins), all(torch.equal(a, b) for a, b in of_all)]
    for each in (wrapped, twin):
        each.zero_grad()
        torch.manual_seed(7 + place.rank)
        sum(out.square().mean() for out in each(torch.randint(11, (6,)))).backward()
    gradients = [[p.grad for p in each.parameters()] for each in (wrapped, twin)]
    return [*found, all(torch.equal(a, b) for a, b in zip(*gradients, strict=True)), again.steps == 3]


def hooked_in_accelerate(place, folder):
    """Whether accelerate saves and restores the state and the model of a prepared model with a hook."""
    from accelerate import Accelerator
    from safetensors.torch import load_file

    accelerator, model = Accelerator(cpu=True), Network()
    wrapped, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    with_hook(place, model, wrapped, optimizer)
    kept = model.state_dict() if place.rank == 0 else dict(model.named_parameters())  # statistics are those of rank 0
    right = {name: value.detach().clone() for name, value in kept.items()}
    accelerator.save_state(str(folder / "state"))
    accelerator.save_model(wrapped, str(folder / "model"))
    accelerator.wait_for_everyone()
    trained(model, 1.0)
    accelerator.load_state(str(folder / "state"))
    loaded, found = model.state_dict(), load_file(folder / "model" / "model.safetensors")
    restored = all(torch.equal(value, loaded[name]) for name, value in right.items())
    return restored, all(torch.equal(value, found[name]) for name, value in right.items())


@pytest.mark.thorough
def test_a_model_with_a_compressing_hook_is_saved_and_loaded_bit_for_bit(tmp_path):
    importlib.import_module("accelerate")  # once, before the ranks fork

    def work(place):
        as_torchrun(place)
        return hooked_in_torch(place, tmp_path / "checkpoint"), hooked_in_accelerate(place, tmp_path / "accelerate")

    for found in in_ranks(work, processes=2):
        assert found == ([True] * 5, (True, True))
