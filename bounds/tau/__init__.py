"""How many local steps: the minimisers of the error-runtime bounds, each with its symbolic derivation."""

from .derivation import Derivation as Derivation
from .derivation import ProofFailed as ProofFailed
from .integer import best_integer as best_integer
from .integer import tau_cap as tau_cap
from .tau_star import TauStar as TauStar
from .tau_star import tau_star as tau_star
