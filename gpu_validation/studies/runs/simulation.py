"""Training without a network: simulated workers and a simulated clock, step for step what real processes compute. ::

    run = TrainingRun(Quadratic(), schedule=8, step=Constant(4e-3), seed=0, steps=400)
    record = simulate(run, RuntimeModel(step=run.step, delay_s=16e-3, m=4))

The losses are those of ``run_training`` bit for bit where the schedule does not look at the clock, or where the run
goes by the same model's clock (``TrainingRun.runtime``); the seconds are the runtime model's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bounds.runtime import RuntimeModel
from operators import Key

from ...averaging.engine import Engine
from ...averaging.pacing.clock import Clock, SimulatedClock
from ...averaging.settings import Pacing
from ...averaging.simulated import SimulatedWorkers
from ...processes.tensors import flat, floating_tensors, load
from ...records.round import Round
from ...records.storage import Record
from .curves import at_points, evenly, look, outline
from .local_steps import Replica, common_model, training_rounds
from .spec import MESSAGES, STEP_TIMES, TrainingRun


def simulate(run: TrainingRun, runtime: RuntimeModel, *, locally: bool = False) -> Record:
    """Carry out a run on simulated workers; plain values as in ``run_training``.

    Parameters
    ----------
    run : TrainingRun
        Its own laws of seconds are not looked at.
    runtime : RuntimeModel
        Of m workers, with the law of their steps.
    locally : bool
        Whether to record also the mean over workers of |grad F|^2 at their own models before every step.

    Returns
    -------
    dict
        ``seconds``, ``step``, ``losses``, ``accuracies``, ``taus`` and ``bits`` at some synchronisations, the start
        included, ``rounds``, ``steps_done``, ``took_s``, and, if traced, ``gradient2``: |grad F|^2 at the workers' mean
        before every step.
    """
    m, key = runtime.workers(), Key(run.seed)
    run.workload.require_workers(m)
    replicas = [Replica.of(run, rank) for rank in range(m)]
    models = [replica.model for replica in replicas]
    clock = SimulatedClock(runtime, m=m, key=key.fold_in(STEP_TIMES))
    workers = engine_of(run, replicas, clock)
    watched, rounds = floating_tensors(models[0]), list[Round]()
    seconds, kept, gradients, local = [0.0], [flat(watched)], list[float](), list[float]()

    def trace() -> None:
        if run.trace:
            gradients.append(_at_the_mean(run, models))
        if locally:
            local.append(float(np.mean([run.workload.evaluate(model)[1] for model in models])))

    for accounts in training_rounds(workers, replicas, before_step=trace):
        rounds.append(accounts[0])
        seconds.append(clock.seconds())
        kept.append(common_model(workers, watched))
        if run.is_over(seconds[-1], workers.periods.total_steps):
            break
    return {
        **outline(run, m, rounds),
        **_looked_at(run, seconds, kept, rounds),
        "took_s": clock.seconds(),
        "gradient2": gradients,
        "local_gradient2": local,
    }


def engine_of(run: TrainingRun, replicas: Sequence[Replica], clock: Clock) -> Engine:
    """Return the engine of simulated workers that synchronise as a run says.

    Parameters
    ----------
    run : TrainingRun
        The run.
    replicas : sequence of Replica
        Its workers.
    clock : Clock
        Which tells the time.
    """
    return SimulatedWorkers(
        [replica.model for replica in replicas],
        [replica.optimizer for replica in replicas],
        schedule=Pacing(run.schedule, run.steps, clock),
        operator=run.operator,
        exchange=run.exchange,
        merge=run.merge,
        outer=run.outer,
        key=Key(run.seed).fold_in(MESSAGES),
    ).engine


def _at_the_mean(run: TrainingRun, models: Sequence[torch.nn.Module]) -> float:
    model = run.workload.model()
    load(torch.stack([flat(list(replica.parameters())) for replica in models]).mean(dim=0), list(model.parameters()))
    return run.workload.evaluate(model)[1]


def _looked_at(
    run: TrainingRun, seconds: Sequence[float], kept: Sequence[torch.Tensor], rounds: Sequence[Round]
) -> Record:
    """Return losses and accuracies at some synchronisations, evenly in time."""
    chosen, model = evenly(seconds, run.points), run.workload.model()
    looks = [look(run.workload, model, kept[i]) for i in chosen]
    losses, accuracies = [loss for loss, _ in looks], [accuracy for _, accuracy in looks]
    return {**at_points(seconds, rounds, chosen), "losses": losses, "accuracies": accuracies}
