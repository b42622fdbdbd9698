"""How many local steps: the minimisers of the error-runtime bounds, each with its symbolic derivation."""

from .compressed import CompressedOptimum as CompressedOptimum
from .compressed import compressed_optimum as compressed_optimum
from .derivation import Derivation as Derivation
from .derivation import PosynomialDerivation as PosynomialDerivation
from .derivation import ProofFailed as ProofFailed
from .derivation import unique_minimiser as unique_minimiser
from .derivation import unique_posynomial_minimiser as unique_posynomial_minimiser
from .integer import best_integer as best_integer
from .integer import best_integer_cubic as best_integer_cubic
from .integer import tau_cap as tau_cap
from .joint import JointOptimum as JointOptimum
from .joint import joint_optimum as joint_optimum
from .overlap import TauOverlap as TauOverlap
from .overlap import tau_overlap as tau_overlap
from .radical import Radical as Radical
from .radical import RadicalMinimiser as RadicalMinimiser
from .straggler import TauStraggler as TauStraggler
from .straggler import tau_straggler as tau_straggler
from .tau_convex import TauConvex as TauConvex
from .tau_convex import tau_convex as tau_convex
from .tau_curved import TauCurved as TauCurved
from .tau_curved import tau_curved as tau_curved
from .tau_smooth import TauSmooth as TauSmooth
from .tau_smooth import tau_smooth as tau_smooth
from .tau_star import TauStar as TauStar
from .tau_star import tau_star as tau_star
