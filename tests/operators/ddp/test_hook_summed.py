"""The hook of sums, in real processes: gradients by the definition, bytes, memory, restart and accidents."""

import itertools

import numpy as np
import pytest
import torch
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from operators import QSGD, ErrorFeedback, Key, PowerSGD
from operators.ddp import register, register_summed
from operators.summed import SharedScale, SignVote, SumEnd, SummedPowerSGD, sum_of_ranks

from .test_hook import KEY, OddShapes, assert_same, gradients_of, reports, wanted

pytestmark = pytest.mark.timeout(200)
NAMES = ["scale", "kernel", "matrix"]
CASES = [
    (SharedScale(8), "layer"),
    (SharedScale(12, block=64), "bucket"),
    (SignVote(), "bucket"),
    (SummedPowerSGD(2), "layer"),
]


def exchange_gradients(place, method, scope, steps=3, restarted=False, settings=None):
    model = DistributedDataParallel(OddShapes(), **(settings or {}))
    hook = register(model, method, scope=scope, key=KEY)
    gradients = []
    for step in range(steps):
        if restarted and step == 2:
            state = hook.state_dict()
            model = DistributedDataParallel(OddShapes())
            hook = register(model, method, scope=scope, key=KEY)
            hook.load_state_dict(state)
        model.zero_grad()
        model(wanted(place.rank, step)).backward()
        gradients.append(gradients_of(model))
    return gradients, (hook.codec_bits, hook.payload_bytes, hook.predicted_bytes)


def by_hand(method, scope, m, steps=3):
    """The same in one process, unit by unit."""
    units = [NAMES] if scope == "bucket" else [[name] for name in NAMES]
    ends, means = {}, []
    for step in range(steps):
        of_step = {}
        for unit in units:
            key = Key(KEY.seed, step=step, path=KEY.path).fold_in(NAMES.index(unit[0]))
            gradients = [wanted(rank, step) for rank in range(m)]
            vectors = [torch.cat([g[name].reshape(-1) for name in unit]) for g in gradients]
            shape = gradients[0][unit[0]].shape
            rows = shape[0] if len(shape) else 1
            if isinstance(method, SummedPowerSGD):
                fitted = SummedPowerSGD(method.rank, (rows, shape.numel() // rows))
            else:
                fitted = method
            ends.setdefault(unit[0], [SumEnd(fitted, key, rank=rank, m=m, d=vectors[0].numel()) for rank in range(m)])
            mean = sum_of_ranks(vectors, fitted, key=key, ends=ends[unit[0]]).mean
            parts = mean.split([gradients[0][name].numel() for name in unit])
            of_step |= {n: p.reshape(gradients[0][n].shape).double().numpy() for n, p in zip(unit, parts, strict=True)}
        means.append(of_step)
    return means


@pytest.mark.every(2)
@pytest.mark.parametrize("m", [2, 3])
def test_gradients_are_those_of_one_process_on_every_rank_and_every_byte_is_counted(m):
    results = reports(lambda place: [exchange_gradients(place, *case) for case in CASES], processes=m)

    for i, (method, scope) in enumerate(CASES):
        expected = by_hand(method, scope, m)
        for gradients, _ in (result[i] for result in results):
            assert_same(gradients, expected)
        counted = [result[i][1] for result in results]
        assert sum(sent for _, sent, _ in counted) == counted[0][2]


def test_buckets_whose_rounds_are_under_way_at_once_do_not_mix():
    """The factors take two rounds, the matrix and the other parameters have a bucket each after the first step."""
    small = {"bucket_cap_mb": 0.001}
    methods = SharedScale(8), SummedPowerSGD(2)

    def work(place):
        return [exchange_gradients(place, method, "layer", settings=small) for method in methods]

    results = reports(work, processes=2)
    for i, method in enumerate(methods):
        expected = by_hand(method, "layer", 2)
        for gradients, _ in (result[i] for result in results):
            assert_same(gradients, expected)
        assert sum(result[i][1][1] for result in results) == results[0][i][1][2]


def test_what_a_rank_sends_of_the_factors_does_not_grow():
    """The matrix has 300 x 7 entries, so factors of rank 1 have 307; there are two rounds."""

    def work(place):
        return exchange_gradients(place, SummedPowerSGD(1), "layer", 1)[1][1]

    sent = [max(reports(work, m)) for m in (2, 4)]

    terms = 4 * (1 + 13 + 307)  # the number as it is, factors of 3 x 10 and of 300 x 7
    for m, payload in zip((2, 4), sent, strict=True):
        bodies = 2 * (1 - 1 / m) * terms
        headers = 2 * (m - 1) * (32 + 8)
        assert payload == pytest.approx(bodies + headers, abs=8 * m)


def test_a_restart_goes_on_bit_for_bit():
    def work(place):
        return [exchange_gradients(place, SummedPowerSGD(1), "layer", steps=4, restarted=r)[0] for r in (False, True)]

    for whole, restarted in reports(work, processes=2):
        assert_same(whole, restarted)


def test_a_gradient_that_is_not_finite_is_told_to_all_ranks():
    def work(place):
        model = DistributedDataParallel(OddShapes())
        register_summed(model, SharedScale(8), key=KEY)
        gradients = wanted(place.rank, 0)
        if place.rank == 1:
            gradients["matrix"][2, 3] = torch.nan
        try:
            model(gradients).backward()
        except ValueError as error:
            return str(error)
        return ""

    sentences = reports(work, processes=3)

    assert set(sentences) == {
        "the gradient of matrix on rank 1 is not finite in binary32: entry 17 at step 0; look for an overflow in the "
        "loss, or clip"
    }


def test_wrong_arguments_are_refused():
    def work(place):
        sentences = []
        for method, settings in [
            (QSGD(levels=4), {}),
            (SummedPowerSGD(), {"scope": "bucket"}),
            (SharedScale(), {"scope": "model"}),
        ]:
            try:
                register_summed(DistributedDataParallel(OddShapes()), method, **settings)
            except (TypeError, ValueError) as error:
                sentences.append(str(error))
        return sentences

    words = ["must be summed on the way", 'pass scope="layer"', 'scope must be "bucket" or "layer"']
    for sentences in reports(work, processes=2):
        for part, sentence in itertools.zip_longest(words, sentences):
            assert part in sentence


def test_means_of_whole_numbers_that_fit_are_exact_but_for_the_scale():
    """Votes of equal ranks are their signs."""
    gradients, _ = reports(lambda place: exchange_gradients(place, SignVote(), "layer", 1), 2)[0]
    means = [wanted(rank, 0) for rank in range(2)]
    for name, value in gradients[0].items():
        votes = sum((m[name].double().numpy() >= 0).astype(int) for m in means)
        np.testing.assert_array_equal(value, np.where(2 * votes >= 2, 1.0, -1.0))


def test_what_has_no_place_beside_a_sum_is_refused():
    def work(place):
        sentences = []
        for settings in ({"exchange": "two_shot"}, {"second": QSGD(levels=4)}, {"feedback": ErrorFeedback}):
            with pytest.raises(ValueError, match="is summed on the way and has an exchange of its own") as caught:
                register(DistributedDataParallel(OddShapes()), SharedScale(), **settings)
            sentences.append(str(caught.value))
        return sentences, register(DistributedDataParallel(OddShapes()), SharedScale(), exchange="auto").exchange

    sentences, exchange = reports(work, 2)[0]
    assert len(set(sentences)) == 3
    assert exchange == "sum"


def low_rank_gradients(place, connect, steps=4):
    """Gradients of one matrix: the mean of all ranks has full rank at every step."""
    model = DistributedDataParallel(torch.nn.Linear(12, 9, bias=False))
    connect(model)
    found = []
    for step in range(steps):
        draw = torch.Generator().manual_seed(10 * step + place.rank)
        model.zero_grad()
        (model(torch.eye(12)) * torch.randn(12, 9, generator=draw)).sum().backward()
        found.append(model.module.weight.grad.clone())
    return found


def test_exact_first_steps_are_those_of_torchs_hook():
    """Steps 0 and 1 are equal bit for bit; from step 2 on both hooks send one factor of rank 1."""

    def theirs(model):
        model.register_comm_hook(
            powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook
        )

    def ours(model):
        register(model, SummedPowerSGD(1, exact_steps=2), scope="layer", key=KEY)

    def gathered(model):
        register(model, PowerSGD(1, exact_steps=2), scope="layer", key=KEY)

    for of_torch, of_sums, of_messages in reports(
        lambda place: [low_rank_gradients(place, connect) for connect in (theirs, ours, gathered)], 2
    ):
        for step, expected in enumerate(of_torch):
            ranks = [np.linalg.matrix_rank(found[step], tol=1e-5) for found in (of_torch, of_sums, of_messages)]
            if step < 2:
                np.testing.assert_array_equal(of_sums[step], expected)
                np.testing.assert_array_equal(of_messages[step], expected)
            assert ranks == ([9, 9, 9] if step < 2 else [1, 1, 2])  # the mean of two messages has rank 2


def test_a_restart_within_the_exact_steps_goes_on_bit_for_bit():
    def work(place):
        method = SummedPowerSGD(1, exact_steps=3)
        return [exchange_gradients(place, method, "layer", steps=5, restarted=again)[0] for again in (False, True)]

    for whole, restarted in reports(work, processes=2):
        assert_same(whole, restarted)
