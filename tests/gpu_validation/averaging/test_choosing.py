"""operator="auto": all executors choose alike, go on after a restart as if never stopped, and count what they send."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bounds.runtime import Coding, Constant, Links, RuntimeModel
from gpu_validation.averaging.exchange.parts import Candidates, Cheapest, exchange_of, row_of, shared_trials, trial_of
from gpu_validation.averaging.membership.parts import Uneven
from gpu_validation.averaging.merge.rules import Corrected
from gpu_validation.averaging.mixing import ring
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.studies.runs.batched_simulation import simulate_together
from gpu_validation.studies.runs.simulation import simulate
from gpu_validation.studies.runs.spec import TrainingRun
from gpu_validation.studies.runs.training import run_training
from gpu_validation.workloads import Quadratic
from operators import QSGD, ErrorFeedback, Key, TopK
from operators.exchange.choice import lengths
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)

D, M = 2000, 3
BYTE = QSGD(levels=127, norm="max", code="fixed")
COARSE = QSGD(levels=1, norm="max", bucket=64, code="fixed")
LADDER = Candidates((None, BYTE, COARSE), codings=(Coding(0.0, 0.0), Coding(0.02, 0.01), Coding(0.02, 0.01)))
WORKLOAD = Quadratic(copies=D // 10)
STEP = Constant(1.0)


def network(latency_s=0.2, dense_s=8.0):
    return RuntimeModel(STEP, communication=Links(latency_s, 2 * (M - 1) / M * 4 * D / dense_s), m=M)


class Virtual:
    """M simulated workers on a workload, and what they chose."""

    def __init__(self, ladder=LADDER, runtime=None, **settings):
        self.models = [WORKLOAD.model() for _ in range(M)]
        self.optimizers = [torch.optim.SGD(model.parameters(), lr=WORKLOAD.eta) for model in self.models]
        clock = SimulatedClock(runtime or network(), m=M, key=Key(3))
        settings = {"schedule": Pacing("auto", clock=clock), "exchange": ladder, "key": Key(1)} | settings
        self.workers = SimulatedWorkers(self.models, self.optimizers, **settings)
        self.rounds, self.choices, self.ends = [], [], []

    def closure(self, rank, k):
        def again():
            self.optimizers[rank].zero_grad()
            loss = WORKLOAD.loss(self.models[rank], key=Key(0, step=k, rank=rank))
            loss.backward()
            return loss

        return again

    def go_on(self, until):
        for k in range(self.workers.total_steps, until):
            closures = [self.closure(rank, k) for rank in range(M)]
            losses = [closure() for closure in closures]
            for optimizer in self.optimizers:
                optimizer.step()
            before = getattr(self.workers.schedule_state, "choice", None)
            accounts = self.workers.step(losses, closures)
            if accounts:
                self.rounds.append(accounts[0])
                self.choices.append(before)
                self.ends.append(self.models_as_one()[0])
        return self

    def models_as_one(self):
        return torch.stack([torch.cat([p.detach().flatten() for p in model.parameters()]) for model in self.models])


def test_bits_are_those_of_the_messages_that_were_sent():
    run = Virtual().go_on(300)

    assert set(run.choices) == {1, 2}  # the dense model costs too much here
    for account, choice in zip(run.rounds, run.choices, strict=True):
        operator = LADDER.operators[choice]
        assert account.mean_bits  # in two shots
        shards = [operator.bits(n).exact for n in lengths(D, M)]
        assert account.bits == (sum(shards),) * M
        assert account.mean_bits == tuple(shards)
    assert [event.bits for event in run.workers.clock.events] == [sum(r.bits) + sum(r.mean_bits) for r in run.rounds]

    dear = Virtual(runtime=RuntimeModel(STEP, delay_s=2.0, m=M)).go_on(300)  # latency alone: nothing to gain
    assert dear.choices[:2] == [2, 1]
    assert dear.choices[-1] == 0
    assert (dear.rounds[-1].bits, dear.rounds[-1].mean_bits) == ((64 * D,) * M, ())  # float64


def test_what_travels_along_is_what_the_averaging_did():
    run = Virtual().go_on(200)
    state, last = run.workers.schedule_state, run.rounds[-1]

    sent = np.array([row[-3:] for row in run.workers.engine.inputs.rows(run.workers.clock)])
    assert (sent[0, 0], sent[0, 1]) == (last.error2, last.norm2)
    assert len(set(sent[:, 2])) == 1  # all have the same mean
    assert sent[0, 2] == pytest.approx(float((run.ends[-1] - run.ends[-2]).square().sum()))
    assert state.tried == (False, True, True)
    assert 0 < state.errors[1] < state.errors[2]
    assert 1 <= state.spread <= M


def test_the_probe_is_made_at_the_decoded_mean():
    run = Virtual()
    looked = []

    def spying(rank, k, inner=run.closure):
        plain, calls = inner(rank, k), []

        def again():
            if calls:
                looked.append((rank, run.models_as_one()[rank]))
            calls.append(1)
            return plain()

        return again

    run.closure = spying
    run.go_on(32)  # the first round ends with a probe

    mean = run.models_as_one()
    assert run.rounds[0].error2 > 0
    assert [rank for rank, _ in looked] == [0, 1, 2]
    for rank, model in looked:
        assert torch.equal(model, mean[rank])
        assert torch.equal(model, mean[0])


@pytest.mark.parametrize("stop", [3, 32, 47, 70, 121])
def test_a_restart_is_exact(stop, tmp_path):
    straight = Virtual().go_on(200)
    first = Virtual().go_on(stop)
    torch.save([first.workers.state_dict(), [model.state_dict() for model in first.models]], tmp_path / "state")

    saved, models = torch.load(tmp_path / "state", weights_only=True)
    again = Virtual()
    for model, values in zip(again.models, models, strict=True):
        model.load_state_dict(values)
    again.workers.load_state_dict(saved)
    again.go_on(200)

    assert torch.equal(again.models_as_one(), straight.models_as_one())
    assert first.choices + again.choices == straight.choices
    assert again.workers.clock.events == straight.workers.clock.events
    assert again.workers.schedule_state == straight.workers.schedule_state
    assert len(set(straight.choices)) > 1


def test_a_restart_goes_by_the_coding_seconds_of_the_run_it_continues():
    first = Virtual().go_on(30)
    slower = replace(LADDER, codings=(Coding(0.0, 0.0), Coding(9.0, 9.0), Coding(9.0, 9.0)))
    again = Virtual(slower)
    again.workers.load_state_dict(first.workers.state_dict())
    assert again.workers.schedule_state == first.workers.schedule_state


RUN = TrainingRun(WORKLOAD, "auto", STEP, 5, steps=200, exchange=LADDER)


def test_processes_and_simulated_workers_make_the_same_run():
    (real,) = run_training([replace(RUN, runtime=network())], m=M, shape=None, scheduling="normal")
    virtual = simulate(RUN, network())

    for name in ("rounds", "bits", "seconds", "losses", "taus"):
        assert real[name] == virtual[name]
    assert virtual["bits"][-1] < 0.2 * 32 * D * M * len(virtual["rounds"]) * 10


def test_alone_and_together_are_the_same_run():
    plain = replace(RUN, schedule=5, exchange=Cheapest(BYTE))
    together = simulate_together([RUN, plain], network())

    for race, record in zip((RUN, plain), together, strict=True):
        alone = simulate(race, network())
        assert record.pop("diverged") is False
        assert record == {name: alone[name] for name in record}


def test_processes_that_measure_choose_alike():
    def work(place):
        model = WORKLOAD.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=WORKLOAD.eta)
        averaging = PeriodicAveraging(model, optimizer, schedule="auto", operator="auto")
        seen = []
        for k in range(100):

            def closure(k=k):
                optimizer.zero_grad()
                loss = WORKLOAD.loss(model, key=Key(0, step=k, rank=place.rank))
                loss.backward()
                return loss

            loss = closure()
            optimizer.step()
            averaging.step(loss, closure)
            state = averaging.schedule_state
            seen.append((averaging.tau, state.choice, state.errors, [c.coding_s for c in state.candidates]))
        return seen, torch.cat([p.detach() for p in model.parameters()]).tolist() if averaging.average() else None

    reports = in_ranks(work, processes=2)
    assert reports[0] == reports[1]
    (*_, (_, _, _, codings)), _ = reports[0]
    assert codings[0] == 0 < min(codings[1:])


def test_another_model_is_tried_and_chosen_for_anew():
    run = Virtual().go_on(100)
    for model in run.models:
        model.more = torch.nn.Parameter(torch.zeros(10, dtype=torch.float64))
    before = run.workers.schedule_state.candidates
    run.workers.average()
    after = run.workers.schedule_state
    assert [c.link_bytes > b.link_bytes for c, b in zip(after.candidates, before, strict=True)] == [True] * 3
    for model in run.models:
        model.more.grad = torch.zeros(10, dtype=torch.float64)
    run.go_on(300)
    assert len(run.workers.schedule_state.windows_s[2]) > 0


def test_the_rule_is_told_what_passes_a_link_and_what_coding_takes():
    whole, byte, coarse = Virtual().workers.schedule_state.candidates
    assert whole.link_bytes == pytest.approx(2 * (M - 1) / M * 8 * D)  # float64, summed
    for candidate, operator in ((byte, BYTE), (coarse, COARSE)):
        assert candidate.twice
        assert candidate.link_bytes == pytest.approx(2 * (M - 1) / M * operator.bits(D).exact / 8)
        assert candidate.coding_s == pytest.approx(0.02 * (1 + 1 / M) + 2 * 0.01)
    models = [WORKLOAD.model(), WORKLOAD.model()]
    pair = SimulatedWorkers(
        models,
        [torch.optim.SGD(model.parameters(), lr=0.1) for model in models],
        schedule="auto",
        exchange=LADDER,
    )
    gathered = pair.schedule_state.candidates[1]
    assert not gathered.twice
    assert gathered.link_bytes == pytest.approx(BYTE.bits(D).exact / 8)


# -- what is known before the first step ---------------------------------------------------------------------
def test_a_trial_tells_bits_error_and_seconds_of_an_operator():
    found = trial_of(BYTE, d=1000, device=torch.device("cpu"), key=Key(0))
    assert found.bits == BYTE.bits(1000).exact
    assert 0 < found.error < BYTE.claim(1000).omega
    assert min(found.coding.encode_s, found.coding.decode_s) > 0


def test_the_slowest_rank_tells_the_seconds_and_the_first_one_the_rest():
    trials = [trial_of(operator, d=64, device=torch.device("cpu"), key=Key(0)) for operator in (BYTE, COARSE)]
    other = [replace(t, coding=Coding(1.0, 0.0), bits=0.0) for t in trials]
    shared = shared_trials(trials, [row_of(trials), row_of(other)])
    assert [t.coding for t in shared] == [Coding(1.0, t.coding.decode_s) for t in trials]
    assert [(t.bits, t.error) for t in shared] == [(t.bits, t.error) for t in trials]


def test_a_simulated_clock_counts_the_seconds_it_is_given_and_no_others():
    run = Virtual().go_on(32)
    m, coding = M, LADDER.codings[2]
    shards = [COARSE.bits(n).exact for n in lengths(D, M)]
    travelling = network().communication.of("two_shot")
    travelling = replace(travelling, result_bits=sum(shards)).seconds(m=m, bits=sum(shards))
    assert run.workers.clock.events[0].seconds == pytest.approx(32 + travelling + coding.encode_s * 4 / 3 + 0.02)

    free = Virtual(replace(LADDER, codings=None)).go_on(32)
    assert free.workers.clock.events[0].seconds == pytest.approx(32 + travelling)


# -- what is refused -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mixing": ring(M)}, "does not work with mixing"),
        ({"merge": Corrected()}, "does not work with merge = Corrected"),
        ({"membership": Uneven()}, "does not work with membership = Uneven"),
        ({"schedule": Pacing("auto", piggyback=True)}, "does not work with piggyback"),
    ],
)
def test_what_a_choice_cannot_go_with_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Virtual(**settings)


def test_a_fixed_schedule_and_strange_operators_are_refused():
    models = [WORKLOAD.model()]
    optimizers = [torch.optim.SGD(models[0].parameters(), lr=0.1)]
    with pytest.raises(ValueError, match=r"does not work with schedule = Fixed\(tau=4\)"):
        SimulatedWorkers(models, optimizers, schedule=4, operator="auto")
    with pytest.raises(ValueError, match="\"auto\" or None; got 'best'"):
        exchange_of("best")
    with pytest.raises(ValueError, match="operators without memory"):
        Candidates((None, ErrorFeedback(TopK(k=3))))
    with pytest.raises(ValueError, match="one coding for each operator; got 1 for 2"):
        Candidates((None, BYTE), codings=(Coding(0.0, 0.0),))
    with pytest.raises(ValueError, match="candidates must be unbiased"):
        SimulatedWorkers(models, optimizers, schedule="auto", exchange=Candidates((None, TopK(k=3))))


def test_telemetry_and_choices_exclude_each_other(tmp_path):
    def work(place):
        model = WORKLOAD.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(ValueError, match="telemetry does not follow operators that change"):
            PeriodicAveraging(model, optimizer, schedule="auto", operator="auto", telemetry=True)
        return True

    assert in_ranks(work, processes=1) == [True]
