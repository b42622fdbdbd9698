"""The laws, in the order in which a report lists them."""

from __future__ import annotations

from .adversarial import Adversarial
from .aggregate_claim import AggregateClaim
from .aggregate_corruption import AggregateCorruption
from .aggregate_mass import AggregateMass
from .aggregate_purity import AggregatePurity
from .corruption import Corruption
from .declared_size import DeclaredSize
from .determinism import Determinism
from .devices import Devices
from .distortion import Distortion
from .dtypes import Dtypes
from .enumeration import Enumeration
from .every_coordinate import EveryCoordinate
from .exact_marginals import ExactMarginals
from .expected_size import ExpectedSize
from .extremes import Extremes
from .feedback_cleared import FeedbackCleared
from .feedback_in_step import FeedbackInStep
from .feedback_mass import FeedbackMass
from .feedback_purity import FeedbackPurity
from .independent_streams import IndependentStreams
from .input_contract import InputContract
from .kept_output import KeptOutput
from .key_collisions import KeyCollisions
from .key_separation import KeySeparation
from .large_index import LargeIndex
from .law import Law
from .negative_zero import NegativeZero
from .no_mutation import NoMutation
from .output_form import OutputForm
from .own_message import OwnMessage
from .payload_alone import PayloadAlone
from .permutation import Permutation
from .private_randomness import PrivateRandomness
from .projection import Projection
from .random_state import RandomState
from .reached import Reached
from .round_trip import RoundTrip
from .scale import Scale
from .sign import Sign
from .strides import Strides
from .subject import Subject
from .sure_contraction import SureContraction
from .unbiasedness import Unbiasedness
from .zero import Zero

LAWS: tuple[Law, ...] = (
    OutputForm(),
    Zero(),
    NoMutation(),
    KeptOutput(),
    # the claim, exactly
    SureContraction(),
    Adversarial(),
    Projection(),
    ExactMarginals(),
    Enumeration(),
    # the claim, statistically
    Distortion(),
    Unbiasedness(),
    Reached(),
    EveryCoordinate(),
    IndependentStreams(),
    # the codec
    DeclaredSize(),
    ExpectedSize(),
    RoundTrip(),
    OwnMessage(),
    PayloadAlone(),
    Corruption(),
    # keys and state
    Determinism(),
    KeySeparation(),
    KeyCollisions(),
    PrivateRandomness(),
    RandomState(),
    # the input
    InputContract(),
    NegativeZero(),
    Extremes(),
    Dtypes(),
    Strides(),
    Devices(),
    LargeIndex(),
    # metamorphic, where declared
    Scale(),
    Sign(),
    Permutation(),
    # wrappers with memory
    FeedbackInStep(),
    FeedbackMass(),
    FeedbackCleared(),
    FeedbackPurity(),
    # mergers
    AggregateClaim(),
    AggregateMass(),
    AggregatePurity(),
    AggregateCorruption(),
)


def laws_for(subject: Subject) -> tuple[Law, ...]:
    """The laws about this kind of subject, whether or not they apply to it."""
    return tuple(law for law in LAWS if law.judges(subject))


def statistical_laws() -> int:
    """Among how many laws the false-alarm budget is split."""
    return sum(law.statistical for law in LAWS)
