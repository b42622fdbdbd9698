"""schedule="auto": what is measured is right, all ranks decide alike, and a probe costs little and disturbs nothing."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from bounds.runtime import Constant, PersistentStragglers, RuntimeModel, ShiftedExponential
from bounds.schedules import GradientRetention, Schedule, State
from bounds.schedules.gradient_retention import LEAST_DECLINE, best_integer
from gpu_validation.averaging.merge.rules import Blocking
from gpu_validation.averaging.mixing import Sampled, ring
from gpu_validation.averaging.pacing import clock as clock_module
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.processes.collectives import ProcessTransport
from gpu_validation.workloads import HeterogeneousQuadratics, Quadratic
from operators import QSGD, ErrorFeedback, Key, TopK
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True)
class Always(State):
    """A probe after every round."""

    probe: bool = True


@dataclass(frozen=True)
class Measuring(Schedule):
    """The same tau throughout, measured at every averaging; what was measured goes to ``seen``."""

    tau: int
    seen: list

    measures: ClassVar[bool] = True

    def __repr__(self):
        return f"Measuring({self.tau})"

    def init(self):
        return Always()

    def __call__(self, state, observation):
        self.seen.append(observation.measured)
        return state, self.tau


def train(place, workload, schedule, steps, *, optimizer=None, record=None, **settings):
    """Local steps of a workload on one rank; record(step, gradient, probing) sees every gradient."""
    model = workload.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta) if optimizer is None else optimizer(model)
    averaging = PeriodicAveraging(model, optimizer, schedule=schedule, **settings)
    accounts = []
    for k in range(steps):
        calls = []

        def closure(k=k, calls=calls):
            optimizer.zero_grad()
            loss = workload.loss(model, key=Key(0, step=k, rank=place.rank))
            loss.backward()
            if record is not None:
                record(k, model.x.grad.clone(), bool(calls))
            calls.append(1)
            return loss

        loss = closure()
        optimizer.step()
        account = averaging.step(loss, closure)
        if account is not None:
            accounts.append(account)
    return averaging, accounts


# -- the retention is what theory says -----------------------------------------------------------------------
def gradients_of_probes(workload, tau, steps, processes):
    """(steps of the probes, h, u, measurements) of real processes at a fixed tau; h, u: (ranks, probes, d)."""

    def work(place):
        last, pairs, seen = {}, {}, []

        def record(k, gradient, probing):
            if probing:
                pairs[k] = (last[k], gradient)
            else:
                last.clear()
                last[k] = gradient

        train(place, workload, Measuring(tau, seen), steps, record=record)
        h, u = (torch.stack([pair[i] for pair in pairs.values()]) for i in (0, 1))
        measured = [(m.lost, m.fresh) for m in seen if m is not None and m.lost is not None]
        return list(pairs), h, u, measured

    reports = in_ranks(work, processes=processes)
    for _, _, _, measured in reports[1:]:
        assert measured == reports[0][3]
    h, u = (np.stack([report[i] for report in reports]) for i in (1, 2))
    return reports[0][0], h, u, np.array(reports[0][3])


@pytest.mark.thorough
def test_retention_on_the_homogeneous_quadratic_does_not_depend_on_tau():
    workload, m, steps = Quadratic(), 2, 16 * 25
    H, found = workload.eigenvalues, {}
    for tau in (2, 4, 16):
        at, h, u, measured = gradients_of_probes(workload, tau, steps + tau, m)
        assert at[:2] == [tau - 1, 2 * tau - 1]
        lost, fresh = ((u - h) * u).sum(axis=2).mean(axis=0), (u * u).sum(axis=2).mean(axis=0)
        np.testing.assert_allclose(measured[:, 0], lost[: len(measured)], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(measured[:, 1], fresh[: len(measured)], rtol=1e-6)

        # of averaged gradients, exactly and in every realisation: hbar - ubar = eta H hbar
        np.testing.assert_allclose((h - u).mean(axis=0), workload.eta * H * h.mean(axis=0), rtol=0, atol=1e-13)

        chosen = [i for i, k in enumerate(at) if (k + 1) % 16 == 0][:25]
        found[tau] = lost[chosen], fresh[chosen]
    for tau in (2, 4):  # the same points and the same noise: what is left differs by terms of mean 0
        np.testing.assert_allclose(found[tau][1], found[16][1], rtol=1e-10)
        apart = found[tau][0] - found[16][0]
        assert abs(apart.mean()) < 6 * apart.std(ddof=1) / np.sqrt(apart.size)  # Student, 24 degrees: 3e-6
        assert apart.std(ddof=1) / np.sqrt(apart.size) < 0.02 * found[16][1].mean()


@pytest.mark.parametrize("tau", [2, 5, 9])
def test_retention_on_different_quadratics_follows_the_first_order_law(tau):
    workload = HeterogeneousQuadratics(eta=2e-3)
    _, h, u, measured = gradients_of_probes(workload, tau, 2 * tau, processes=2)
    h, u = h[:, 0], u[:, 0]
    H, g = workload.H, -np.einsum("ijk,ik->ij", workload.H, workload.c)  # at the start, x = 0
    apart = g - g.mean(axis=0)
    # x_i = x - eta (tau - 1) g_i before the last step, and the average is x - eta tau gbar
    change = workload.eta * np.einsum("ijk,ik->ij", H, (tau - 1) * apart - g.mean(axis=0))

    ubar = u.mean(axis=0)
    of_means = (ubar - h.mean(axis=0)) @ ubar / (ubar @ ubar)
    law_of_means = change.mean(axis=0) @ ubar / (ubar @ ubar)
    assert of_means == pytest.approx(law_of_means, rel=0.1)
    lost, fresh = measured[0]
    assert lost / fresh == pytest.approx((change * g).sum() / (g * g).sum(), rel=0.1)


def test_equal_hessians_lose_nothing_of_the_mean_but_something_of_each():
    one = ((1.0, 0.0), (0.0, 0.2))
    workload = HeterogeneousQuadratics(hessians=(one, one), eta=2e-3)
    _, h, u, measured = gradients_of_probes(workload, 16, 32, processes=2)

    ubar, hbar = u[:, 0].mean(axis=0), h[:, 0].mean(axis=0)
    np.testing.assert_allclose(hbar - ubar, workload.eta * workload.H[0] @ hbar, rtol=1e-9)
    assert measured[0, 0] > 0.01 * measured[0, 1]


# -- all ranks decide alike ----------------------------------------------------------------------------------
class Slept:
    """The time of a rank: it stands still but for what is said to take time."""

    def __init__(self):
        self.now_s = 0.0

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds


class Slow(ProcessTransport):
    """An averaging that takes some milliseconds."""

    def __init__(self, time):
        super().__init__()
        self.time = time

    def means(self, owns, members):
        self.time.sleep(8e-3)
        return super().means(owns, members)


def test_all_ranks_hold_the_same_tau_with_stragglers_and_after_a_restart(tmp_path):
    def run(place, steps, resume):
        clock_module.time = time = Slept()  # of this process
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta, momentum=0.5)
        averaging = PeriodicAveraging(model, optimizer, schedule="auto", process_group=Slow(time))
        path = tmp_path / f"{place.rank}.pt"
        if resume:
            saved = torch.load(path, weights_only=True)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            averaging.load_state_dict(saved["averaging"])
        taus = []
        for k in range(averaging.total_steps, steps):

            def closure(k=k):
                optimizer.zero_grad()
                loss = workload.loss(model, key=Key(0, step=k, rank=place.rank))
                loss.backward()
                return loss

            loss = closure()
            optimizer.step()
            time.sleep(1e-3 * (1 + (k + place.rank) % 3))  # a straggler, in turns
            averaging.step(loss, closure)
            taus.append(averaging.tau)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "averaging": averaging.state_dict()}, path)
        state = averaging.schedule_state
        return taus, state.delay_ratio, state.straggler, averaging.engine.periods.local_steps

    before = in_ranks(lambda place: run(place, 120, resume=False), processes=3)
    after = in_ranks(lambda place: run(place, 170, resume=True), processes=3)

    for reports in (before, after):
        assert all(report == reports[0] for report in reports)
    taus, n, straggler, unfinished = before[0]
    assert taus[:63] == [32] * 63
    assert max(taus) > 32
    assert 1 < n < 30  # 8 ms against 2 ms
    assert straggler > 0
    assert unfinished > 0
    assert after[0][0][0] == taus[-1]  # it goes on in the middle of the round


def runtime():
    return RuntimeModel(ShiftedExponential(0.8, 0.2), delay_s=6.0)


def simulated_run(place, steps, *, m, path=None, resume=False):
    workload = Quadratic()
    clock = SimulatedClock(runtime(), m=m, key=Key(4))
    model = workload.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
    averaging = PeriodicAveraging(model, optimizer, schedule=Pacing("auto", clock=clock))
    if resume:
        saved = torch.load(f"{path}/{place.rank}.pt", weights_only=True)
        model.load_state_dict(saved["model"])
        averaging.load_state_dict(saved["averaging"])
    for k in range(averaging.total_steps, steps):

        def closure(k=k):
            optimizer.zero_grad()
            loss = workload.loss(model, key=Key(0, step=k, rank=place.rank))
            loss.backward()
            return loss

        loss = closure()
        optimizer.step()
        averaging.step(loss, closure)
    if path is not None:
        torch.save({"model": model.state_dict(), "averaging": averaging.state_dict()}, f"{path}/{place.rank}.pt")
    events = [(event.seconds, event.steps) for event in clock.events]
    return model.x, events, averaging.schedule_state.to_dict(), averaging.engine.inputs.evaluations


def test_a_resumed_run_decides_as_the_uninterrupted_one(tmp_path):
    straight = in_ranks(lambda place: simulated_run(place, 240, m=2), processes=2)
    in_ranks(lambda place: simulated_run(place, 110, m=2, path=tmp_path), processes=2)
    resumed = in_ranks(lambda place: simulated_run(place, 240, m=2, path=tmp_path, resume=True), processes=2)

    for (x, *known), (other_x, *other) in zip(straight, resumed, strict=True):
        np.testing.assert_array_equal(x, other_x)
        assert known == other


def test_virtual_workers_are_the_real_processes_bit_for_bit():
    real = in_ranks(lambda place: simulated_run(place, 200, m=3), processes=3)

    workload = Quadratic()
    models = [workload.model() for _ in range(3)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=workload.eta) for model in models]
    clock = SimulatedClock(runtime(), m=3, key=Key(4))
    workers = SimulatedWorkers(models, optimizers, schedule=Pacing("auto", clock=clock))
    for k in range(200):
        closures = []
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):

            def closure(k=k, rank=rank, model=model, optimizer=optimizer):
                optimizer.zero_grad()
                loss = workload.loss(model, key=Key(0, step=k, rank=rank))
                loss.backward()
                return loss

            closures.append(closure)
        losses = [closure() for closure in closures]
        for optimizer in optimizers:
            optimizer.step()
        workers.step(losses, closures)

    for model, (x, events, state, evaluations) in zip(models, real, strict=True):
        np.testing.assert_array_equal(model.x.detach(), x)
        assert [(event.seconds, event.steps) for event in clock.events] == events
        assert workers.engine.periods.rule.to_dict() == state
        assert workers.engine.inputs.evaluations == evaluations


# -- with what people train ----------------------------------------------------------------------------------
def centres(workers, different):
    """Two features and three classes; with ``different`` every worker has labels of its own."""
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(600, 2, generator=draw), torch.arange(600) % 3
    x += 2.0 * torch.stack([torch.cos(2.1 * y), torch.sin(2.1 * y)], dim=1)
    shards = [torch.arange(len(y)) for _ in range(workers)]
    return x, y, [torch.nonzero(y == i % 3).flatten() for i in range(workers)] if different else shards


def virtual_run(
    *,
    different,
    optimizer,
    steps=600,
    n=8.0,
    dtype=torch.float32,
    accumulate=1,
    sizes=(8, 8, 8),
    jumps=None,
    **settings,
):
    """(workers, taus of the rounds) of a softmax classifier under "auto" on the simulated clock.

    The jump of the loss in every probe is put to ``jumps``.
    """
    m = len(sizes)
    x, y, shards = centres(m, different)
    torch.manual_seed(0)
    models = [torch.nn.Sequential(torch.nn.Linear(2, 3)).to(dtype) for _ in range(m)]
    optimizers = [optimizer(model.parameters()) for model in models]
    clock = SimulatedClock(RuntimeModel(Constant(1.0), delay_s=n), m=m, key=Key(0))
    workers = SimulatedWorkers(models, optimizers, schedule=Pacing("auto", clock=clock), **settings)
    draw, taus = torch.Generator().manual_seed(1), []
    for _ in range(steps):
        closures = []
        for model, own, shard, size in zip(models, optimizers, shards, sizes, strict=True):
            chosen = shard[torch.randint(len(shard), (accumulate, size), generator=draw)]

            def closure(model=model, own=own, chosen=chosen):
                own.zero_grad()
                total = 0.0
                for part in chosen:
                    loss = cross_entropy(model(x[part].to(dtype)), y[part]) / len(chosen)
                    loss.backward()
                    total += loss.detach()
                return total

            closures.append(closure)
        losses = [closure() for closure in closures]
        for own in optimizers:
            own.step()
        accounts = workers.step(losses, closures)
        if accounts:
            taus.append(accounts[0].tau)
            if jumps is not None and (jump := workers.schedule_state.loss_jump) is not None and jumps[-1:] != [jump]:
                jumps.append(jump)
    return workers, taus


SETTINGS = {
    "SGD": {"optimizer": lambda p: torch.optim.SGD(p, lr=0.3)},
    "momentum": {"optimizer": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8)},
    "Adam": {"optimizer": lambda p: torch.optim.Adam(p, lr=0.05)},
    "reset": {"optimizer": lambda p: torch.optim.Adam(p, lr=0.05), "merge": Blocking(optimizer_state="reset")},
    "compressed": {"optimizer": lambda p: torch.optim.SGD(p, lr=0.3), "operator": QSGD(levels=8)},
    "feedback": {"optimizer": lambda p: torch.optim.SGD(p, lr=0.3), "operator": ErrorFeedback(TopK(fraction=0.5))},
    "uneven": {"optimizer": lambda p: torch.optim.SGD(p, lr=0.3), "sizes": (2, 8, 32)},
    "accumulated": {"optimizer": lambda p: torch.optim.SGD(p, lr=0.3), "accumulate": 4, "sizes": (2, 2, 2)},
    "bfloat16": {"optimizer": lambda p: torch.optim.SGD(p, lr=0.3), "dtype": torch.bfloat16},
    "sampled": {"optimizer": lambda p: torch.optim.SGD(p, lr=0.3), "mixing": Sampled(2, Key(3))},
}


QUICK = ("SGD", "Adam", "compressed")


@pytest.mark.thorough
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SETTINGS])
def test_different_data_shorten_the_rounds_and_make_the_loss_jump(name):
    jumps_alike, jumps_apart = [], []
    alike, taus_alike = virtual_run(different=False, jumps=jumps_alike, **SETTINGS[name])
    apart, taus_apart = virtual_run(different=True, jumps=jumps_apart, **SETTINGS[name])

    state = apart.schedule_state
    assert state.decline > 2 * alike.schedule_state.decline
    assert state.decline > 0.01
    assert np.mean(jumps_apart) > 0.02 > 3 * np.mean(jumps_alike)
    assert max(taus_apart[-3:]) < best_integer(delay_ratio=8.0, decline=LEAST_DECLINE * 2**0.5) == 69
    assert max(taus_apart[2:]) < max(taus_alike[2:]) / 1.5


def test_probes_cost_two_percent_of_the_time_at_most():
    workers, _ = virtual_run(different=True, optimizer=lambda p: torch.optim.SGD(p, lr=0.3), steps=800)

    spent = workers.clock.events[-1].seconds  # in steps; every probe took one
    assert 5 < workers.engine.inputs.evaluations <= 1 + 0.02 * spent


def test_no_gradient_but_the_first_is_computed_twice_while_averaging_costs_nothing():
    workers, taus = virtual_run(different=True, optimizer=lambda p: torch.optim.SGD(p, lr=0.3), steps=164, n=0.0)

    assert taus == [32, 32, *[1] * 100]
    assert workers.engine.inputs.evaluations == 1


def test_a_slow_worker_is_waited_for_less_often():
    def final_tau(step):
        clock = SimulatedClock(RuntimeModel(step, delay_s=1.0), m=2, key=Key(0))
        models = [Quadratic().model() for _ in range(2)]
        optimizers = [torch.optim.SGD(model.parameters(), lr=1e-12) for model in models]
        workers = SimulatedWorkers(models, optimizers, schedule=Pacing("auto", clock=clock))

        def closure(model, optimizer):
            optimizer.zero_grad()
            loss = model.x.square().sum()
            loss.backward()
            return loss

        pairs = list(zip(models, optimizers, strict=True))
        for _ in range(400):
            losses = [closure(*pair) for pair in pairs]
            workers.step(losses, [lambda pair=pair: closure(*pair) for pair in pairs])
        return workers.engine.periods.tau

    alone = best_integer(delay_ratio=1.0, decline=LEAST_DECLINE * 2**0.5)
    assert final_tau(Constant(1.0)) == alone
    assert final_tau(PersistentStragglers(Constant(1.0), [1.0, 2.0])) > alone


def test_a_subgroup_of_ranks_decides_by_itself():
    def work(place):
        pair = dist.new_group([1, 2])
        if place.rank == 0:
            return None
        clock = SimulatedClock(runtime(), m=2, key=Key(0))
        _, accounts = train(place, Quadratic(), Pacing("auto", clock=clock), 150, process_group=pair)
        return [account.tau for account in accounts]

    alone, *pair = in_ranks(work, processes=3)

    assert alone is None
    assert pair[0] == pair[1]
    assert max(pair[0]) > 32


def test_bytes_of_the_notes_are_counted():
    def work(place):
        clock = SimulatedClock(runtime(), m=2, key=Key(0))
        sent = []
        for operator in (None, QSGD(levels=4)):
            averaging, _ = train(place, Quadratic(), Pacing("auto", clock=clock), 60, operator=operator)
            sent.append((averaging.transport.payload_bytes, averaging.transport.predicted_bytes))
        return sent

    reports = in_ranks(work, processes=2)
    for kind in (0, 1):
        assert sum(report[kind][0] for report in reports) == reports[0][kind][1]


def test_set_up_changes_nothing_and_is_not_counted():
    def work(place):
        found = []
        for operator in (None, QSGD(levels=4), ErrorFeedback(TopK(k=2))):
            model = Quadratic().model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            averaging = PeriodicAveraging(model, optimizer, schedule="auto", operator=operator)
            transport, (worker,) = averaging.transport, averaging.engine.workers
            state = worker.sender.state
            fresh = None if not isinstance(operator, ErrorFeedback) else operator.init(10)
            same = repr(state) == repr(fresh)
            found.append((transport.payload_bytes, transport.predicted_bytes, model.x, same))
        return found

    for report in in_ranks(work, processes=3):
        for sent, predicted, x, same in report:
            assert (sent, predicted) == (0, 0)
            np.testing.assert_array_equal(x, np.ones(10))
            assert same


# -- what is refused -----------------------------------------------------------------------------------------
def pair_of_workers(**settings):
    models = [Quadratic().model() for _ in range(3)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    return SimulatedWorkers(models, optimizers, schedule="auto", **settings)


def test_a_missing_closure_is_asked_for_in_one_sentence():
    with pytest.raises(ValueError, match=r"call averaging\.step\(loss, closure\), where closure\(\) computes the grad"):
        pair_of_workers().step([1.0, 1.0, 1.0])


def test_modes_without_an_averaged_model_are_refused():
    with pytest.raises(ValueError, match=r"Gossip does not work with schedule = GradientRetention.*no common model"):
        pair_of_workers(mixing=ring(3))


def test_other_words_for_a_schedule_are_refused():
    model = Quadratic().model()
    with pytest.raises(ValueError, match="a number, a rule or \"auto\"; got 'adaptive'"):
        SimulatedWorkers([model], schedule="adaptive")
    with pytest.raises(ValueError, match="need the optimizer"):
        SimulatedWorkers([model], schedule="auto")
    assert pair_of_workers().engine.periods.schedule == GradientRetention()
