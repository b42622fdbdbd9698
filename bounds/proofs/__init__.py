"""One-step inequalities as data: weights, premises and squares that a machine expands to zero.

A derivation in prose rests on inequalities of a single step.  Each is a ``Proof`` here: what it claims, what it takes
as given, and with which weights the premises and squares add up to the claim.  Parameters stay symbols, and the number
of workers is arbitrary.  Sums over rounds and expectations over the past stay prose.
"""

from .export import from_json as from_json
from .export import to_json as to_json
from .export import to_lean as to_lean
from .proof import Premise as Premise
from .proof import Proof as Proof
from .proof import Square as Square
from .proof import Vectors as Vectors
from .steps import all_proofs as all_proofs
from .steps import proofs_of as proofs_of
