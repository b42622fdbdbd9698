"""Buffers in averagings: equal ones stay bit for bit and cost a digest, others get an exact mean, or are named."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_validation.averaging.merge.rules import Corrected, Delayed
from gpu_validation.averaging.mixing import Elastic, Sampled, ring
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.averaging.worker import averaged_buffers, exact_mean, integer_mean, offenders
from gpu_validation.processes.tensors import as_bytes
from operators import Key, TopK
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
WAYS = {
    "models": {},
    "deltas": {"operator": TopK(fraction=1.0)},
    "corrected": {"merge": Corrected()},
    "delayed": {"merge": Delayed()},
    "elastic": {"mixing": Elastic(0.3)},
    "gossip": {"mixing": ring(2)},
    "sampled": {"mixing": Sampled(1, Key(3))},
}
INT64 = torch.iinfo(torch.int64)
EQUAL = {
    "hash": torch.tensor([2**62 + 1, 2**53 + 1, INT64.min, INT64.max]),
    "lowest": torch.tensor([torch.finfo(torch.float64).min, 5e-324, -0.0], dtype=torch.float64),
    "payload": torch.tensor([0x7FC01234, -0x3FEDCC, 0x7F800000], dtype=torch.int32).view(torch.float32),
    "flags": torch.tensor([True, False]),
    "bytes": torch.arange(256, dtype=torch.uint8),
    "words": torch.tensor([2**16 - 1, 3]).to(torch.uint16),
    "complex": torch.tensor([complex(1, float("nan"))]),
    "short": torch.tensor([1e-7, -65504.0], dtype=torch.float16),
    "tiny": torch.tensor([1.5, -0.25]).to(torch.float8_e4m3fn),
    "scalar": torch.tensor(2.0**-149),
    "nothing": torch.zeros(0, 3),
    "expanded": torch.tensor([[1.0, float("-inf")]]).expand(5, 2),
}


def with_buffers(buffers):
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2)
    for name, value in buffers.items():
        model.register_buffer(name, value.clone() if value.stride() == value.clone().stride() else value)
    return model


def averaged(buffers, **settings):
    """What buffers that differ between simulated workers become in one averaging."""
    settings = {"schedule": 1} | settings
    workers = SimulatedWorkers([with_buffers(buffers[0]) for _ in buffers], **settings)
    for worker, values in zip(workers.engine.workers, buffers, strict=True):
        for name, value in values.items():
            worker.model._buffers[name] = value.clone()
    for _ in range(settings["schedule"]):
        workers.step()
    return [dict(worker.model.named_buffers()) for worker in workers.engine.workers]


# -- exact means -----------------------------------------------------------------------------------------------
whole = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(whole, min_size=1, max_size=9))
@example([2**63 - 1] * 3)
@example([-(2**63)] * 3)
@example([2**62 + 1, 2**62 + 2])
def test_the_mean_of_integers_is_exact_and_rounded_to_even(values):
    (mean,) = integer_mean([np.array([value]) for value in values])
    assert mean == round(Fraction(sum(values), len(values)))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5))
def test_the_mean_of_unsigned_integers_is_exact_too(values):
    parts = {
        r: torch.from_numpy(np.array([v], np.uint64).view(np.int64)).view(torch.uint64) for r, v in enumerate(values)
    }
    mean = exact_mean(parts, dict.fromkeys(parts, 1 / len(values)))
    assert int(mean.view(torch.int64).numpy().view(np.uint64)[0]) == round(Fraction(sum(values), len(values)))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=6))
@example([-1.7976931348623157e308, -1.6e308])
def test_the_mean_of_float64_does_not_overflow(values):
    parts = {r: torch.tensor([v], dtype=torch.float64) for r, v in enumerate(values)}
    mean = float(exact_mean(parts, dict.fromkeys(parts, 1 / len(values))))
    exact = sum(map(Fraction, values)) / len(values)
    assert abs(Fraction(mean) - exact) <= len(values) * Fraction(max(map(abs, values))) * Fraction(2) ** -52


def test_entries_that_are_equal_keep_their_bits_and_ranks_with_others_that_are_not_finite_are_found():
    nan = torch.tensor([0x7FC01234], dtype=torch.int32).view(torch.float32)
    parts = {0: torch.cat([nan, torch.tensor([1.0])]), 1: torch.cat([nan, torch.tensor([2.0])])}
    mean = exact_mean(parts, {0: 0.5, 1: 0.5})
    assert torch.equal(as_bytes(mean)[:4], as_bytes(nan))
    assert mean[1] == 1.5
    assert offenders(parts) == []
    parts[1][1] = float("inf")
    assert offenders(parts) == [1]


def test_masks_and_views_of_parameters_are_left_out():
    model = with_buffers({"flags": torch.tensor([True]), "kept": torch.tensor(1.0)})
    model.register_buffer("mask", torch.ones(2), persistent=False)
    model.register_buffer("alias", model.weight.detach()[0])
    model.register_buffer("again", model.kept)
    assert list(averaged_buffers(model)) == ["kept"]


# -- simulated workers -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"operator": TopK(fraction=1.0)},
        {"mixing": ring(2)},
        {"merge": Corrected(delay=1), "schedule": 2},  # the message leaves after the first step
    ],
)
def test_buffers_that_differ_become_their_mean_in_their_dtype(settings):
    first = {
        "mean": torch.tensor([1.0, 3.0e38]),
        "count": torch.tensor([2**62 + 1, 7]),
        "wide": torch.tensor([-1.7e308, 1.0], dtype=torch.float64),
        "bytes": torch.tensor([250, 3], dtype=torch.uint8),
        "big": torch.tensor([2**63], dtype=torch.uint64),
        "low": torch.tensor([1.0, 2.0], dtype=torch.bfloat16),
        "tiny": torch.tensor([1.0]).to(torch.float8_e5m2),
        "complex": torch.tensor([1 + 2j]),
    }
    second = {
        "mean": torch.tensor([2.0, 3.0e38]),
        "count": torch.tensor([2**62 + 3, 8]),
        "wide": torch.tensor([-1.6e308, 2.0], dtype=torch.float64),
        "bytes": torch.tensor([252, 4], dtype=torch.uint8),
        "big": torch.tensor([2**63 + 2], dtype=torch.uint64),
        "low": torch.tensor([2.0, 2.0], dtype=torch.bfloat16),
        "tiny": torch.tensor([2.0]).to(torch.float8_e5m2),
        "complex": torch.tensor([3 + 2j]),
    }
    for found in averaged([first, second], **settings):
        assert found["mean"].tolist() == [1.5, float(torch.tensor(3.0e38))]
        assert found["count"].tolist() == [2**62 + 2, 8]  # 7.5 is rounded to even
        np.testing.assert_allclose(found["wide"], [-1.65e308, 1.5])
        assert found["bytes"].tolist() == [251, 4]
        assert int(found["big"].view(torch.int64).numpy().view(np.uint64)[0]) == 2**63 + 1
        assert found["low"].tolist() == [1.5, 2.0]
        assert float(found["tiny"].float()) == 1.5
        assert found["complex"].tolist() == [2 + 2j]


def test_a_buffer_that_is_not_finite_is_named_and_recovery_takes_the_mean_of_the_others():
    models = [with_buffers({"running_var": torch.ones(2), "mask": torch.tensor([float("-inf")])}) for _ in range(3)]
    workers = SimulatedWorkers(models, schedule=1)
    for rank, model in enumerate(models):
        with torch.no_grad():
            model.running_var += rank
            model.weight.fill_(rank)
    models[1].running_var[1] = float("nan")
    with pytest.raises(ValueError, match="the buffer running_var of rank 1 is not finite"):
        workers.step()
    assert [model.weight[0, 0].item() for model in models] == [0, 1, 2]
    workers.recover()
    for model in models:
        assert model.running_var.tolist() == [2.0, 2.0]
        assert model.mask.tolist() == [float("-inf")]
        assert model.weight.tolist() == [[1, 1], [1, 1]]


def test_how_many_exchanges_buffers_cost(monkeypatch):
    """None without buffers, one row of digests for equal ones, and one mean more for those that differ."""
    for buffers, differs, right in (({}, False, 0), (EQUAL, False, 1), ({"running": torch.ones(3)}, True, 2)):
        workers = SimulatedWorkers([with_buffers(buffers) for _ in range(3)], schedule=1)
        counts = []
        for name in ("all_gather_ints", "all_gather_floats", "means", "receive"):
            method = getattr(workers.engine.transport, name)
            monkeypatch.setattr(
                workers.engine.transport, name, lambda *a, of=method, n=counts, **k: n.append(1) or of(*a, **k)
            )
        for k in range(3):
            del counts[:]
            for rank, worker in enumerate(workers.engine.workers):
                if differs:
                    worker.model.running.fill_(float(rank + k))
            workers.step()
        assert len(counts) == 1 + right, (list(buffers), counts)  # one for the models


# -- real ranks ------------------------------------------------------------------------------------------------
def _all_cases(place):
    found = {}
    for name, settings in WAYS.items():
        model = with_buffers(EQUAL)
        model.register_buffer("mask", torch.ones(300, 300), persistent=False)
        with torch.inference_mode():
            made_so = torch.ones(3)
        model.register_buffer("inference", made_so)
        before = {key: as_bytes(b).clone() for key, b in model.named_buffers()}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        averaging = PeriodicAveraging(model, optimizer, schedule=1, **settings)
        sent = averaging.transport.payload_bytes
        for _ in range(2):
            averaging.step()
        sent = averaging.transport.payload_bytes - sent
        same = {key: torch.equal(as_bytes(b), before[key]) for key, b in model.named_buffers()}
        found[name] = sent, same
    found["growing"] = _growing(place)
    found["differing shapes"] = _told(place, lambda m: m.register_buffer("cache", torch.zeros(2 + place.rank)))
    found["differing dtypes"] = _told(
        place, lambda m: m.register_buffer("cache", torch.zeros(2, dtype=(torch.float32, torch.int64)[place.rank]))
    )
    found["one rank only"] = _told(place, lambda m: m.register_buffer("cache", torch.zeros(2)) if place.rank else None)
    found["first buffer"] = _told(
        place, lambda m: m.register_buffer("cache", torch.zeros(2)) if place.rank else None, torch.nn.Linear(2, 2)
    )
    found["local caches"] = _told(
        place, lambda m: m.register_buffer("cache", torch.zeros(2 + place.rank), persistent=False)
    )
    found["expanded"] = _expanded(place)
    found["at the start"] = _at_the_start(place)
    return found


def _growing(place):
    """A buffer whose shape changes between averagings, on all ranks alike."""
    model = with_buffers({"history": torch.zeros(1)})
    averaging = PeriodicAveraging(model, schedule=1)
    for step in range(1, 4):
        model.history = torch.full((step + 1,), float(place.rank + step))
        averaging.step()
    return model.history.tolist()


def _told(place, change, model=None):
    words = []
    for settings in ({}, {"operator": TopK(fraction=1.0)}):
        model = torch.nn.Linear(2, 2) if isinstance(model, torch.nn.Linear) else with_buffers({"kept": torch.zeros(1)})
        averaging = PeriodicAveraging(model, schedule=1, **settings)
        change(model)
        try:
            averaging.step()
        except (ValueError, RuntimeError) as error:
            words.append(f"{type(error).__name__}: {error}")
    return words


def _expanded(place):
    model = with_buffers({"rows": torch.tensor([[float(place.rank), 1.0]]).expand(4, 2)})
    averaging = PeriodicAveraging(model, schedule=1)
    start = model.rows.clone()
    model.rows = torch.tensor([[float(place.rank), 1.0]]).expand(4, 2)
    averaging.step()
    return start, model.rows


def _at_the_start(place):
    model = torch.nn.Linear(2, 2)
    if place.rank:
        model.register_buffer("extra", torch.zeros(3))
    try:
        PeriodicAveraging(model, schedule=1)
    except ValueError as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def reports():
    return in_ranks(_all_cases, processes=2)


@pytest.mark.parametrize("way", WAYS)
def test_equal_buffers_stay_bit_for_bit_and_cost_a_digest(reports, way):
    for report in reports:
        sent, same = report[way]
        assert all(same.values()), [name for name, kept in same.items() if not kept]
        assert sent < 600, sent


def test_a_buffer_may_change_its_shape_on_all_ranks(reports):
    assert [report["growing"] for report in reports] == [[3.5] * 4] * 2


def test_expanded_buffers_start_as_rank_0s_and_are_averaged(reports):
    for report in reports:
        start, rows = report["expanded"]
        assert start.tolist() == [[0, 1]] * 4
        assert rows.tolist() == [[0.5, 1]] * 4


@pytest.mark.parametrize("case", ["differing shapes", "differing dtypes", "one rank only", "first buffer"])
def test_buffers_that_are_not_alike_are_named_on_all_ranks(reports, case):
    first, second = (report[case] for report in reports)
    assert first == second
    assert len(first) == 2
    assert all("cache" in words for words in first), first


def test_caches_of_one_rank_alone_are_nobodys_business(reports):
    assert [report["local caches"] for report in reports] == [[], []]


def test_a_difference_at_the_start_names_the_tensor(reports):
    first, second = (report["at the start"] for report in reports)
    assert first == second
    assert "extra is missing on rank 0 and float32 of shape (3,) on rank 1" in first
