"""Expected bits of a contractive operator for a uniformly random direction: the sphere rate.

Derivation.  X is uniform on the sphere, ``E|C(X) - X|^2 <= alpha``.  As for ``gaussian_bits`` the expected length is at
least I(X; ``C(X) |`` key) = ``h(X) - h(X | C(X), key)``, entropies on the sphere.  Given a value of the condition let y
be the mean of X.  Among laws on the sphere with mean y the von Mises-Fisher law with ``A(kappa) = |y|`` has the largest
entropy, h(X) - kappa A + ln K(kappa) nats.  Its derivative by ``|y|^2`` is -kappa/(2A), which decreases, so it is
concave in ``|y|^2``.  The centroid is the best output, so ``E|y|^2 >= 1 - alpha``, and Jensen's inequality gives
R_S(alpha, d).
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.sphere_rate_function import sphere_rate_of
from ..symbols import alpha, d

sphere_bits = Bound(
    name="sphere_bits",
    quantity="expected bits about a uniform direction under E|C(x)-x|^2 <= alpha |x|^2",
    side=Side.LOWER,
    value=sphere_rate_of(alpha, d),
    assuming=(sp.Ge(d, 2),),
    reference=Reference("dytso2024", "rate of the uniform law on the sphere", arxiv="2401.04248"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.CONTRACTIVE_ON_SPHERE, Property.SELF_DELIMITING}), Conclusion.SPHERE_MEAN_DIRECTION
    ),
    examples=(
        Example({"alpha": "0.1", "d": 3}, "3.84173269541091515936938521", "A = coth k - 1/k solved with 40 digits"),
        Example({"alpha": "0.5", "d": 100}, "49.7933796180493753631919562", "Bessel functions with 40 digits"),
        Example({"alpha": "0.5", "d": 1000}, "499.792570383482512983272233", "Bessel functions with 40 digits"),
    ),
    unit="bit",
    note="The norm is not counted.",
    latex_name=r"E\,b",
)
