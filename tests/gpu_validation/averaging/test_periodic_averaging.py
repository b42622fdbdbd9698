"""PASGD: when it synchronises, that all ranks agree, and that the averaged model is what a plain loop gives."""

import contextlib
import io
import math
import time
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
import torch.distributed as dist

from bounds.runtime import Exponential, RuntimeModel
from bounds.schedules import AdaComm, Observation, Schedule, State
from gpu_validation.averaging.merge.rules import Blocking, Corrected
from gpu_validation.averaging.mixing import Sampled, ring
from gpu_validation.averaging.outer import BlockMomentum, Nesterov
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.processes.collectives import ProcessTransport
from gpu_validation.processes.launch import run_ranks
from gpu_validation.processes.tensors import flat
from gpu_validation.workloads import Quadratic
from operators import ErrorFeedback, Identity, Key, RandomisedSparseDithering, TopK
from operators.random import normal
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
WORKERS, STEPS = 4, 32


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    """Compile once, here: forked processes inherit it, and would else do it each for itself."""
    x = normal(Key(0), Quadratic().d).astype(np.float32)
    for operator in (RandomisedSparseDithering(omega=1.0), TopK(fraction=0.2), Identity()):
        operator(x, key=Key(0))


def local_step(workload, model, optimizer, step, rank, seed=0):
    optimizer.zero_grad()
    loss = workload.loss(model, key=Key(seed, step=step, rank=rank))
    loss.backward()
    optimizer.step()
    return loss


def pasgd(operator, tau, seed=0, **settings):
    """Real processes; per rank (anchors after every round, indices of the synchronising steps)."""

    def work(place):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
        averaging = PeriodicAveraging(
            model, optimizer, schedule=tau, operator=operator, key=Key(seed).fold_in(1), **settings
        )
        anchors, synced = [], []
        for k in range(STEPS):
            loss = local_step(workload, model, optimizer, k, place.rank, seed)
            if averaging.step(loss) is not None:
                anchors.append(averaging.anchor.numpy().copy())
                synced.append(k + 1)
        return np.array(anchors), synced

    return in_ranks(work, processes=WORKERS)


def plain_loop(compress, tau, seed=0, block_momentum=0.0):
    """The same algorithm in one process, without torch.distributed or autograd.

    compress(rank, delta, key) gives what the others decode.
    """
    workload = Quadratic()
    anchor, momentum, anchors = np.ones(workload.d), np.zeros(workload.d), []
    for start in range(0, STEPS, tau):
        mean = np.zeros(workload.d)
        for rank in range(WORKERS):
            x = anchor.copy()
            for k in range(start, start + tau):
                noise = np.sqrt(workload.noise) * normal(Key(seed, step=k, rank=rank), workload.d)
                x -= workload.eta * (workload.eigenvalues * x + noise)
            key = Key(seed, step=start // tau, rank=rank).fold_in(1)
            mean += compress(rank, (x - anchor).astype(np.float32), key).astype(float) / WORKERS
        momentum = block_momentum * momentum - mean / workload.eta
        anchor = anchor - workload.eta * momentum
        anchors.append(anchor)
    return np.array(anchors)


@dataclass(frozen=True)
class Scripted(Schedule):
    """The taus of a list, one a round."""

    taus: tuple[int, ...]

    def init(self):
        return Turn(0)

    def __call__(self, state, observation):
        return Turn(state.round_index + 1), self.taus[state.round_index]

    def restore(self, data):
        return Turn(**data)


@dataclass(frozen=True)
class Turn(State):
    round_index: int


@pytest.mark.parametrize("tau", [1, 4])
def test_synchronisations_come_after_steps_tau_two_tau_and_so_on(tau):
    for _, synced in pasgd(Identity(), tau):
        assert synced == list(range(tau, STEPS + 1, tau))


def test_a_new_tau_begins_with_a_new_round():
    for _, synced in pasgd(Identity(), Scripted((2, 5, 1, 3, 20, 20))):
        assert synced == [2, 7, 8, 11, 31]


def test_averaged_model_of_the_additive_noise_quadratic_does_not_depend_on_tau():
    often, _ = pasgd(Identity(), tau=1)[0]
    seldom, _ = pasgd(Identity(), tau=16)[0]

    # messages are binary32 and deltas are below 1: each of the 32 averagings rounds by at most 2^-25
    np.testing.assert_allclose(often[15::16], seldom, rtol=0, atol=STEPS * 2.0**-25)
    assert np.abs(often[-1] - often[15]).max() > 1e-3  # the model did move


@pytest.mark.parametrize("operator", [Identity(), RandomisedSparseDithering(omega=1.0)], ids=repr)
def test_real_processes_agree_with_each_other_and_with_a_plain_loop(operator):
    reports = pasgd(operator, tau=4)

    for anchors, _ in reports[1:]:
        np.testing.assert_array_equal(anchors, reports[0][0])
    expected = plain_loop(lambda rank, delta, key: operator(delta, key=key), tau=4)
    np.testing.assert_allclose(reports[0][0], expected, rtol=1e-12, atol=1e-15)


def test_feedback_carries_each_workers_residual_from_round_to_round():
    operator, owed = TopK(fraction=0.2), np.zeros((WORKERS, 10), np.float32)

    def compress(rank, delta, key):
        wanted = delta + owed[rank]
        sent = operator(wanted, key=key)
        owed[rank] = wanted - sent
        return sent

    reports = pasgd(ErrorFeedback(operator), tau=4)

    np.testing.assert_allclose(reports[3][0], plain_loop(compress, tau=4), rtol=1e-12, atol=1e-15)
    assert np.abs(owed).max() > 0


def test_block_momentum_is_in_gradient_units():
    reports = pasgd(Identity(), tau=4, outer=BlockMomentum(0.3))

    expected = plain_loop(lambda rank, delta, key: delta, tau=4, block_momentum=0.3)
    np.testing.assert_allclose(reports[0][0], expected, rtol=1e-12, atol=1e-15)


def test_same_seed_gives_identical_bits_and_another_seed_does_not():
    operator = RandomisedSparseDithering(omega=1.0)

    first, second, other = (pasgd(operator, tau=8, seed=s)[0][0] for s in (3, 3, 4))

    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_all_ranks_choose_the_same_tau_from_different_losses_and_clocks():
    def work(place):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
        rule = AdaComm(tau_0=8, interval_s=1e-9)  # decides anew at every averaging
        averaging = PeriodicAveraging(model, optimizer, schedule=rule)
        averaging.clock._began -= 100.0 * place.rank  # clocks far apart
        taus = []
        for k in range(STEPS):
            local_step(workload, model, optimizer, k, place.rank)
            account = averaging.step(10.0 * (1 + place.rank) / (1 + k))  # losses far apart
            if account is not None:
                taus.append(account.tau)
        return taus, averaging.transport.payload_bytes, averaging.transport.predicted_bytes

    reports = in_ranks(work, processes=WORKERS)

    taus = [taus for taus, _, _ in reports]
    assert taus[0] == taus[1] == taus[2] == taus[3]
    assert taus[0][0] == 8
    assert min(taus[0]) < 8  # it did adapt
    assert sum(sent for _, sent, _ in reports) == reports[0][2]


def test_starting_point_and_buffers_are_the_same_everywhere():
    def work(place):
        torch.manual_seed(place.rank)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        averaging = PeriodicAveraging(model, schedule=2)
        start = flat(averaging.parameters)
        own = []
        for _ in range(2):
            model(torch.randn(8, 3))
            own.append(model[1].running_mean.clone())
            averaging.step()
        return start, own[-1], model[1].running_mean.clone(), model[1].num_batches_tracked.item()

    reports = in_ranks(work, processes=2)

    (start, own, after, _), (other_start, other_own, other_after, _) = reports
    np.testing.assert_array_equal(start, other_start)
    assert (own != other_own).any()
    mean = ((own.astype(float) + other_own) / 2).astype(np.float32)
    np.testing.assert_array_equal(after, mean)
    np.testing.assert_array_equal(other_after, mean)
    assert [tracked for *_, tracked in reports] == [2, 2]


@pytest.mark.parametrize("odd", ["a weight", "a buffer", None])
def test_only_a_rank_whose_model_is_replaced_warns(odd):
    def work(place):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        model[1].running_mean[0] = math.nan  # the same bits on all ranks
        if odd and place.rank == 1:
            changed = model[0].weight if odd == "a weight" else model[1].running_var
            changed.data[0] += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            PeriodicAveraging(model, schedule=2)
        return [str(warning.message) for warning in caught]

    first, second, third = in_ranks(work, processes=3)

    assert first == third == []
    assert [text.partition(":")[0] for text in second] == [
        "the model of rank 1 differed from that of rank 0 and was replaced by it"
    ] * bool(odd)


@pytest.mark.parametrize("policy", ["keep", "average", "reset"])
def test_optimizer_state_is_kept_averaged_or_reset(policy):
    def work(place):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta, momentum=0.9)
        averaging = PeriodicAveraging(model, optimizer, schedule=3, merge=Blocking(optimizer_state=policy))
        for k in range(3):
            local_step(workload, model, optimizer, k, place.rank)
            before = optimizer.state[model.x]["momentum_buffer"].clone()
            averaging.step()
        return before, optimizer.state.get(model.x, {}).get("momentum_buffer")

    (before_0, after_0), (before_1, after_1) = in_ranks(work, processes=2)

    assert (before_0 != before_1).any()
    if policy == "reset":
        assert after_0 is None
        assert after_1 is None
    elif policy == "average":
        mean = (before_0 + before_1) / 2
        np.testing.assert_array_equal(after_0, mean)
        np.testing.assert_array_equal(after_1, mean)
    else:
        np.testing.assert_array_equal(after_0, before_0)
        np.testing.assert_array_equal(after_1, before_1)


def test_a_resumed_run_continues_bit_for_bit(tmp_path):
    def run(place, stop=None, resume=False):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta, momentum=0.5)
        averaging = PeriodicAveraging(
            model, optimizer, schedule=Scripted((3, 5, 4, 9, 9, 9)), operator=ErrorFeedback(TopK(k=2)), key=Key(7)
        )
        path, start = tmp_path / f"{place.rank}.pt", 0
        if resume:
            saved = torch.load(path, weights_only=True)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            averaging.load_state_dict(saved["averaging"])
            start = saved["step"]
        for k in range(start, stop or STEPS):
            local_step(workload, model, optimizer, k, place.rank)
            averaging.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": stop}
        torch.save({**state, "averaging": averaging.state_dict()}, path)
        return flat(averaging.parameters)

    straight = in_ranks(run, processes=2)
    in_ranks(lambda place: run(place, stop=10), processes=2)  # in the middle of a round
    resumed = in_ranks(lambda place: run(place, resume=True), processes=2)

    np.testing.assert_array_equal(straight, resumed)


def test_observation_needs_every_ranks_loss():
    def work(place):
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = []

        @dataclass(frozen=True)
        class Spy(Scripted):
            def __call__(self, state, observation):
                seen.append(observation)
                return super().__call__(state, observation)

        averaging = PeriodicAveraging(
            model, optimizer, schedule=Pacing(Spy((1, 1, 1)), steps=9), process_group=ProcessTransport()
        )
        averaging.step(1.0 + place.rank)
        averaging.step(5.0 if place.rank else None)
        return [(o.loss, o.step, o.steps_left) for o in seen]

    assert in_ranks(work, processes=2) == [[(1.5, 0, 9), (1.5, 1, 8), (None, 2, 7)]] * 2
    assert Observation(0.0, 0, 0.1).loss is None


# -- ranks that are not in step ----------------------------------------------------------------------------
def point(*x):
    model = torch.nn.Module()
    model.x = torch.nn.Parameter(torch.tensor(x))
    return model


def words_of(action):
    try:
        action()
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_unequal_numbers_of_steps_are_refused_in_one_sentence():
    def work(place):
        found = {}
        for name, settings in {
            "models": {},
            "deltas": {"operator": TopK(fraction=1.0)},
            "gossip": {"mixing": ring(3)},
        }.items():
            averaging = PeriodicAveraging(point(1.0), schedule=200, **settings)
            for _ in range(150 + place.rank):
                averaging.step()
            found[name] = words_of(averaging.average)
        return found

    reports = in_ranks(work, processes=3)

    for rank, report in enumerate(reports):  # also rank 1, which has made as many steps as the average
        for name in ("models", "gossip"):
            made = f"this rank has made {150 + rank} local steps, those it averages with 151 on average"
            assert report[name].startswith(f"UnevenSteps: {made}")
        assert report["deltas"].startswith("UnevenSteps: the ranks have made [150, 151, 152] local steps")
        assert all("every rank must make the same number" in words for words in report.values())


def test_a_rank_that_has_left_is_named_as_the_cause():
    def work(place, emit):
        averaging = PeriodicAveraging(point(1.0), schedule=1)
        averaging.step()
        if place.rank:
            dist.destroy_process_group()
            time.sleep(20)
        emit(words_of(averaging.step))

    with contextlib.closing(run_ranks(work, processes=2, hang_timeout_s=30)) as reports:
        words = next(reports)

    assert words.startswith("RuntimeError: averaging 1 after 2 local steps failed, because another rank has ended")


def test_ranks_configured_differently_are_told_before_they_wait_for_each_other():
    def work(place):
        last = place.rank == 2
        return [
            words_of(lambda: PeriodicAveraging(point(1.0), schedule=4 + last)),
            words_of(lambda: PeriodicAveraging(point(*[1.0] * (2 + last)))),
            words_of(lambda: PeriodicAveraging(point(1.0), operator=TopK(k=1 + last), key=Key(0, rank=place.rank))),
            words_of(lambda: PeriodicAveraging(point(1.0), operator=TopK(k=1), key=Key(0, rank=place.rank))),
        ]

    setting = "ValueError: all ranks need equal settings; ranks 0 and 2 differ in "
    tensor = "ValueError: all ranks must hold the same tensors; x is float32 of shape (2,) on rank 0 and float32 of"
    for *refused, accepted in in_ranks(work, processes=3):
        assert refused[0] == f"{setting}schedule: give all ranks the same schedule"
        assert refused[2] == f"{setting}operator: give all ranks the same operator"
        assert refused[1].startswith(tensor)
        assert accepted is None


class Hidden:
    def __init__(self, lr):
        self.lr = lr

    def __call__(self, parameters):
        return torch.optim.SGD(parameters, lr=self.lr)


def test_outer_steps_are_compared_by_the_optimizers_that_they_make():
    def closed(lr, momentum=0.0):
        return lambda parameters: torch.optim.SGD(parameters, lr=lr, momentum=momentum)

    def work(place):
        lr = 0.1 + place.rank / 2
        different = [
            closed(lr),
            closed(0.1, momentum=place.rank / 2),
            Hidden(lr),
            partial(torch.optim.SGD, lr=lr),
            lambda parameters, lr=lr: torch.optim.Adam(parameters, lr=lr),
            lambda parameters: torch.optim.SGD(parameters, lr=torch.tensor(lr)),
            [torch.optim.SGD, torch.optim.Adagrad][place.rank],
        ]
        equal = [closed(0.5), Hidden(0.5), partial(torch.optim.SGD, lr=0.5), [closed(0.5), Hidden(0.5)][place.rank]]
        return [
            [words_of(lambda outer=outer: PeriodicAveraging(point(1.0), outer=outer)) for outer in outers]
            for outers in (different, equal)
        ]

    for different, equal in in_ranks(work, processes=2):
        sentence = (
            "ValueError: all ranks need equal settings; ranks 0 and 1 differ in outer: give all ranks the same outer"
        )
        assert different == [sentence] * 7
        assert equal == [None] * 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: {}, "got an empty one"),
        (lambda state: {k: v for k, v in state.items() if k != "fingerprint"}, "no fingerprint of its settings"),
        (lambda state: damaged(state, math.nan), "must be finite; workers, 0, sender, residual has NaN"),
        (
            lambda state: damaged(state, torch.zeros(3)),
            r"residual must have the shape and dtype \(2,\), float32",
        ),
        (lambda state: damaged(state, torch.zeros(2).double()), r"got \(2,\), float64"),
    ],
)
def test_a_damaged_state_is_refused_with_its_entry(change, words):
    workers = SimulatedWorkers([point(1.0, 2.0)] * 1, operator=ErrorFeedback(TopK(k=1)))

    with pytest.raises(ValueError, match=words):
        workers.load_state_dict(change(workers.state_dict()))


def damaged(state, residual):
    (worker,) = state["workers"]
    old = worker["sender"]["residual"]
    new = residual if isinstance(residual, torch.Tensor) else torch.full_like(old, residual)
    return state | {"workers": [worker | {"sender": worker["sender"] | {"residual": new}}]}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"schedule": 3}, "schedule"),
        ({"operator": ErrorFeedback(TopK(k=2))}, "operator"),
        ({"key": Key(7)}, "key"),
        ({"outer": Nesterov(0.5, 0.9)}, "outer"),
        ({"merge": Corrected(delay=1, fragments=2)}, "merge"),
        ({"merge": Blocking(fragments=2)}, "merge"),
    ],
)
def test_a_state_of_other_settings_is_refused_by_name(settings, name):
    given = {"schedule": 2, "operator": ErrorFeedback(TopK(k=1)), "outer": Nesterov(0.7, 0.9)}
    state = SimulatedWorkers([point(1.0, 2.0)], **given).state_dict()

    with pytest.raises(ValueError, match=f"differs in {name}: give the same {name}, or start without a state"):
        SimulatedWorkers([point(1.0, 2.0)], **given | settings).load_state_dict(state)


def test_a_state_of_another_number_of_workers_or_model_is_refused():
    state = SimulatedWorkers([point(1.0, 2.0) for _ in range(2)]).state_dict()

    with pytest.raises(ValueError, match="differs in model, world size and rank"):
        SimulatedWorkers([point(1.0, 2.0)]).load_state_dict(state)
    with pytest.raises(ValueError, match="differs in model: give the same model"):
        SimulatedWorkers([point(1.0) for _ in range(2)]).load_state_dict(state)


def test_all_ranks_hold_the_same_tau_at_every_step_with_a_straggler_and_after_a_restart():
    rule, steps, cut = AdaComm(tau_0=6, interval_s=0.01), 36, 14

    def work(place):
        taus, saved = [], None
        for start, stop in ((0, cut), (cut, steps)):
            model = point(1.0 + place.rank)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (1 + place.rank))  # even rates differ
            averaging = PeriodicAveraging(model, optimizer, schedule=rule)
            if saved is not None:
                averaging.load_state_dict(saved)
            for k in range(start, stop):
                time.sleep(0.01 * (place.rank == 1) * (k % 3))  # one is slow, and not evenly
                account = averaging.step(2.0 ** (-k / 6) * (1 + 3 * place.rank))
                taus.append((averaging.tau, account is not None))
            saved = averaging.state_dict()
        return taus, averaging.total_steps

    reports = in_ranks(work, processes=3)

    assert reports[0] == reports[1] == reports[2]
    taus, total = reports[0]
    assert total == steps
    assert taus[0] == (6, False)
    assert len({tau for tau, _ in taus}) >= 3  # tau fell several times


def test_a_resumed_adaptive_run_repeats_the_unbroken_one_bit_for_bit():
    runtime = RuntimeModel(Exponential(1.0), delay_s=2.0)

    def run(place, cuts):
        workload, saved = Quadratic(), None
        taus, events = [], []
        for start, stop in zip([0, *cuts], [*cuts, STEPS], strict=True):
            model = workload.model()
            optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
            averaging = PeriodicAveraging(
                model,
                optimizer,
                schedule=Pacing(
                    AdaComm(tau_0=8, interval_s=6.0, gamma=0.6), clock=SimulatedClock(runtime, m=place.size, key=Key(2))
                ),
                operator=ErrorFeedback(TopK(k=3)),
                outer=BlockMomentum(0.3),
            )
            if saved is not None:
                model.load_state_dict(saved["model"])
                averaging.load_state_dict(saved["averaging"])
            for k in range(start, stop):
                local_step(workload, model, optimizer, k, place.rank)
                averaging.step(10.0 / (1 + k) + place.rank)
                taus.append(averaging.tau)
            buffer = io.BytesIO()
            torch.save({"model": model.state_dict(), "averaging": averaging.state_dict()}, buffer)
            saved = torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)
            events = averaging.clock.events
        return flat(averaging.parameters), averaging.anchor, taus, events

    def work(place):
        return run(place, []), run(place, [11, 12, 25])

    for straight, resumed in in_ranks(work, processes=2):
        for one, other in zip(straight, resumed, strict=True):
            np.testing.assert_equal(one, other)
        assert len(set(straight[2])) >= 3


# -- the rest of the interface -----------------------------------------------------------------------------
def test_a_process_group_averages_among_its_own_ranks():
    def work(place):
        group = dist.new_group([0, 2])
        model = point(float(place.rank), 5.0)
        if place.rank == 1:
            return model.x
        averaging = PeriodicAveraging(model, schedule=1, process_group=group)
        with torch.no_grad():
            model.x += place.rank
        averaging.step()
        return model.x

    reports = in_ranks(work, processes=3)

    np.testing.assert_array_equal(reports, [[1.0, 6.0], [1.0, 5.0], [1.0, 6.0]])


def test_models_kept_apart_by_gossip_can_be_united_at_the_end():
    def work(place):
        model = torch.nn.BatchNorm1d(1)
        averaging = PeriodicAveraging(model, schedule=4, mixing=ring(4))
        with torch.no_grad():
            model.weight += place.rank
            model.running_mean += 4 * place.rank
        averaging.average_exactly()
        return model.weight, model.running_mean, averaging.anchor

    for weight, mean, anchor in in_ranks(work, processes=4):
        assert (weight.tolist(), mean.tolist(), anchor.tolist()) == ([2.5], [6.0], [2.5, 0.0])


def test_sampled_clients_know_when_to_idle():
    mode = Sampled(1, Key(9))

    def work(place):
        model = point(0.0)
        averaging = PeriodicAveraging(model, schedule=1, mixing=mode, operator=Identity())
        taken = []
        for round_index in range(6):
            taken.append(averaging.takes_part)
            with torch.no_grad():
                model.x += 2.0**round_index if averaging.takes_part else float("nan")  # what the idle ones do is lost
            averaging.step()
        return taken, model.x

    reports = in_ranks(work, processes=3)

    for round_index in range(6):
        assert [report[0][round_index] for report in reports] == [
            rank in mode.members(round_index, 3) for rank in range(3)
        ]
    assert [report[1].item() for report in reports] == [63.0] * 3


def test_the_operator_that_changes_nothing_is_not_run_on_a_float32_model():
    """The messages would be the same bits; models are sent whole in place of movements."""

    def work(place):
        found = []
        for operator in (None, Identity()):
            torch.manual_seed(0)
            model = torch.nn.Linear(5, 3)
            averaging = PeriodicAveraging(model, schedule=2, operator=operator)
            rounds = []
            for step in range(4):
                with torch.no_grad():
                    model.weight += (step + 1) * (place.rank + 0.3)
                rounds.append(averaging.step())
            found.append((model.weight, [r.bits for r in rounds if r], averaging.anchor is None))
        return found

    for (models, bits, bare), (same, same_bits, also_bare) in in_ranks(work, processes=2):
        np.testing.assert_array_equal(models, same)
        assert bits == same_bits == [(32 * 18, 32 * 18)] * 2
        assert bare
        assert also_bare
