"""What a pilot predicts of training on a cluster, against synchronous uncompressed training on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .. import numbers
from ..cluster.cluster import Cluster, checked_cluster
from ..pilots.pilot import Pilot
from ..pilots.prediction import Prediction
from ..pilots.timings import LEVEL
from .call import Call, Command, Route
from .pilot import PILOT_EXAMPLE
from .shared import MOST_PILOT_BYTES, measured_pilot, with_steps_of

if TYPE_CHECKING:
    from operators import Operator


def predict(
    pilot: Pilot | str,
    cluster: Cluster,
    *,
    operator: str | Operator | None = None,
    exchange: Literal["gather", "two_shot", "node_gather", "node_two_shot"] = "gather",
    tau: numbers.Number = 1,
    overlap: bool = False,
    parts: numbers.Number = 1,
    in_flight: numbers.Number | None = None,
    buckets: numbers.Number = 1,
    level: numbers.Number = LEVEL,
    steps: numbers.Number | None = None,
    d: numbers.Number | None = None,
) -> Prediction:
    """Predict seconds and progress of a step from a pilot, against synchronous uncompressed training.

    Parameters
    ----------
    pilot : Pilot or str
        A file of gpu_validation.pilot, or resnet20 or transformer, recorded.  In Python also a ``Pilot``.
    cluster : Cluster
        Workers and links, such as ``pilot.cluster(workers=64)``.
    operator : str or Operator or None, optional
        One that the pilot has tried; else binary32, summed on its way.
    exchange : {"gather", "two_shot", "node_gather", "node_two_shot"}, optional
        How compressed messages travel.
    tau : int, optional
        Local steps between two averages, at most as many as the pilot has looked at.
    overlap : bool, optional
        Whether averages travel while the workers go on.
    parts : int, optional
        Fragments of the model, sent one after the other, every tau/parts steps, with overlap.
    in_flight : int or None, optional
        Local steps made while a message travels, with overlap; all tau/parts between two messages unless given.
    buckets : int, optional
        Messages of a gradient, all but the last sent during the backward pass, at tau = 1, without overlap.
    level : array_like, optional
        Confidence of the intervals, 0 < level < 1.
    steps : int or None, optional
        Synchronous steps to the loss, by which what error feedback owes is shared out; left out of the progress unless
        given.
    d : array_like, optional
        Beside a recorded pilot, the parameters of a model whose gradients have the recorded statistics; else those of
        the recorded model.

    Raises
    ------
    ValueError
        For bad arguments, an operator that was not tried, and a file that is no pilot.

    Notes
    -----
    ``Pilot.predict`` says what it is; what the pilot does not tell stands in ``unknown``.
    """
    return measured_pilot(pilot, d).predict(
        checked_cluster(cluster),
        operator=operator,
        exchange=exchange,
        tau=tau,
        overlap=overlap,
        parts=parts,
        in_flight=in_flight,
        buckets=buckets,
        level=numbers.real("level", level),
        steps=None if steps is None else numbers.whole("steps", steps),
    )


def _run(pilot: Pilot | str, cluster: Cluster, **asked: Any) -> Prediction:
    """Return the prediction for workers whose steps are the pilot's."""
    measured = measured_pilot(pilot)
    return predict(measured, with_steps_of(measured, cluster), **asked)


CALL = Call(
    name="predict",
    summary="what a pilot predicts: seconds and progress of a step on a cluster",
    place=6,
    function=predict,
    command=Command(
        examples=(
            "pilot.json --workers 64 --operator qsgd:4 --level .9",
            "pilot.json --workers 64 --nodes 8 --inside nvlink4,3e-6 --between 4e11,5e-6 --tau 4 --overlap --parts 2",
        ),
        run=_run,
    ),
    route=Route(
        about="What a pilot has measured, a cluster, and one choice of operator, exchange and local steps.",
        example={
            "pilot": PILOT_EXAMPLE,
            "cluster": {"workers": 64},
            "operator": "qsgd:16",
            "buckets": 4,
            "level": 0.9,
        },
        run=_run,
        stated=False,
        most_bytes=MOST_PILOT_BYTES,
    ),
)
