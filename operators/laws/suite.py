"""The laws, in the order in which they are tried and a report lists them."""

from __future__ import annotations

from .aggregate_laws import AggregateClaim, AggregateCorruption, AggregateCount, AggregateMass, AggregatePurity
from .feedback_laws import FeedbackCleared, FeedbackInStep, FeedbackMass, FeedbackPurity, FeedbackSums
from .kit.law import Law
from .kit.subject import Subject
from .operator.adversarial import Adversarial
from .operator.circumstances import Circumstances
from .operator.corruption import Corruption
from .operator.declared_size import DeclaredSize
from .operator.distortion import Distortion
from .operator.enumeration import Enumeration
from .operator.every_coordinate import EveryCoordinate
from .operator.exact_marginals import ExactMarginals
from .operator.expected_size import ExpectedSize
from .operator.extremes import Extremes
from .operator.hooks import HookMean
from .operator.input_contract import InputContract
from .operator.kept_output import KeptOutput
from .operator.lengths import Lengths
from .operator.negative_zero import NegativeZero
from .operator.no_mutation import NoMutation
from .operator.output_form import OutputForm
from .operator.own_message import OwnMessage
from .operator.payload_alone import PayloadAlone
from .operator.permutation import Permutation
from .operator.projection import Projection
from .operator.round_trip import RoundTrip
from .operator.scale import Scale
from .operator.sign import Sign
from .operator.streams import Determinism, IndependentStreams, KeySeparation, PrivateRandomness, RandomState
from .operator.sure_contraction import SureContraction
from .operator.tightness import Tightness
from .operator.unbiasedness import Unbiasedness
from .operator.zero import Zero

LAWS: tuple[Law, ...] = (  # first what a few calls show, so that a wrong compressor is accused early
    OutputForm(),
    Zero(),
    NoMutation(),
    KeptOutput(),
    # the codec
    DeclaredSize(),
    RoundTrip(),
    OwnMessage(),
    PayloadAlone(),
    Corruption(),
    # keys and state
    Determinism(),
    KeySeparation(),
    PrivateRandomness(),
    RandomState(),
    # the input
    InputContract(),
    NegativeZero(),
    Extremes(),
    Circumstances(),
    Lengths(),
    # metamorphic, where declared
    Scale(),
    Sign(),
    Permutation(),
    # the claim, exactly
    SureContraction(),
    Adversarial(),
    Projection(),
    ExactMarginals(),
    Enumeration(),
    # the claim, statistically
    Distortion(),
    ExpectedSize(),
    Unbiasedness(),
    Tightness(),
    EveryCoordinate(),
    IndependentStreams(),
    HookMean(),
    # wrappers with memory
    FeedbackInStep(),
    FeedbackMass(),
    FeedbackSums(),
    FeedbackCleared(),
    FeedbackPurity(),
    # mergers
    AggregateClaim(),
    AggregateCount(),
    AggregateMass(),
    AggregatePurity(),
    AggregateCorruption(),
)


def laws_for(subject: Subject) -> tuple[Law, ...]:
    """Return the laws about this kind of subject, whether or not they apply to it."""
    return tuple(law for law in LAWS if law.judges(subject))


def statistical_laws() -> int:
    """Return among how many laws the false-alarm budget is split."""
    return sum(law.statistical for law in LAWS)
