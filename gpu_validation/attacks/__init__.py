"""What faulty workers send: random rescaling, random signs, negation, omniscient collusion."""

from .attack import Attack as Attack
from .collude import Collude as Collude
from .negate import Negate as Negate
from .random_signs import RandomSigns as RandomSigns
from .rescale import Rescale as Rescale
