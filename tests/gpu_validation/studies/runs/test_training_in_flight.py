"""Real processes whose averages are in flight make the runs that simulated workers make, one run after the other."""

import mmap
from dataclasses import replace

import pytest

from bounds.runtime import Constant, RuntimeModel
from gpu_validation import Nesterov
from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager
from gpu_validation.studies.runs.batched_simulation import simulate_together
from gpu_validation.studies.runs.spec import TrainingRun
from gpu_validation.studies.runs.training import _Finish, run_training
from gpu_validation.workloads import SmallNetwork

pytestmark = pytest.mark.timeout(120)
STEP = Constant(1.0)
RUNTIME = RuntimeModel(step=STEP, delay_s=6.0, m=2)
NETWORK = SmallNetwork(batch=4, decay=1e-3)
RUNS = [
    TrainingRun(NETWORK, 4, STEP, 0, budget_s=40.0, merge=Eager()),
    TrainingRun(NETWORK, 4, STEP, 1, budget_s=40.0, merge=Corrected(delay=3), outer=Nesterov(0.9, 0.5)),
    TrainingRun(NETWORK, 4, STEP, 2, budget_s=40.0, merge=Delayed()),
]


def test_losses_and_seconds_are_those_of_the_simulation():
    real = run_training([replace(run, runtime=RUNTIME) for run in RUNS], m=2, shape=None, scheduling="normal")

    for record, simulated in zip(real, simulate_together(RUNS, RUNTIME), strict=True):
        for name in ("seconds", "step", "bits", "taus", "losses", "accuracies", "rounds", "steps_done", "took_s"):
            assert record[name] == simulated[name]
    assert len({tuple(record["losses"]) for record in real}) == len(RUNS)


def test_a_rank_that_is_a_round_behind_does_not_end_early():
    """Of the latest decision alone it would: rank 0 then sends once more, to nobody."""
    finish = _Finish(mmap.mmap(-1, _Finish.BYTES))
    finish.clear()
    finish.decide(5, over=False)
    finish.decide(6, over=True)
    assert [finish.await_decision(index) for index in (5, 6)] == [False, True]
    finish.clear()
    finish.decide(0, over=False)
    assert not finish.await_decision(0)
