"""Bits of a random vector at a mean square error: a Gaussian vector, a direction, Gaussian blocks of finite length."""

import sympy as sp

from ..bound import Bound, Example, Free, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.normal import ChiSquareLog2Ratio, NormalUpperQuantile
from ..special.random_code_miss import RandomCodeMiss
from ..special.sphere_rate import sphere_rate_of
from ..symbols import alpha, bits, d, miss, nmse, radius

gaussian_bits = Bound(
    name="gaussian_bits",
    quantity="expected bits of one message about a Gaussian vector, E|C(X)-X|^2 <= alpha E|X|^2",
    side=Side.LOWER,
    value=-d / 2 * sp.log(alpha, 2),
    reference=Reference("shannon1959", "Gaussian source"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.CONTRACTIVE_ON_GAUSSIAN, Property.SELF_DELIMITING}), Conclusion.GAUSSIAN_MEAN_MESSAGE
    ),
    examples=(
        Example({"alpha": "0.25", "d": 1}, "1.000000000000", "one bit quarters the variance, by hand"),
        Example({"alpha": "0.5", "d": 1000}, "500.000000000", "half a bit per coordinate, by hand"),
    ),
    unit="bit",
    note="It includes the norm and holds for the expected length over the Gaussian input and the randomness.",
    latex_name=r"E\,b",
)
"""The rate-distortion limit of an isotropic Gaussian vector under a mean-square constraint.

Statement.  X ~ N(0, s^2 I_d), ``E|C(X) - X|^2 <= alpha E|X|^2``.  Then the expected length of a self-delimiting message
(all bits, shared randomness free) is at least (d/2) log2(1/alpha).  Every contractive operator meets the premise.

Derivation.  Given the key, a self-delimiting message is a prefix code: E length >= H(message ``|`` key) >= I(X; ``C(X)
|`` key) = ``h(X) - h(X | C(X), key)`` >= h(X) - h(X - C(X)); X is independent of the key.  Among vectors with ``E|Z|^2
= D`` the Gaussian one has the largest entropy, and by concavity of the logarithm (Jensen over coordinates) it is at
most (d/2) log2(2 pi e D/d).  With D = alpha s^2 d and h(X) = (d/2) log2(2 pi e s^2) the claim follows.
"""

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
"""Expected bits of a contractive operator for a uniformly random direction: the sphere rate.

Derivation.  X is uniform on the sphere, ``E|C(X) - X|^2 <= alpha``.  As for ``gaussian_bits`` the expected length is at
least I(X; ``C(X) |`` key) = ``h(X) - h(X | C(X), key)``, entropies on the sphere.  Given a value of the condition let y
be the mean of X.  Among laws on the sphere with mean y the von Mises-Fisher law with ``A(kappa) = |y|`` has the largest
entropy, h(X) - kappa A + ln K(kappa) nats.  Its derivative by ``|y|^2`` is -kappa/(2A), which decreases, so it is
concave in ``|y|^2``.  The centroid is the best output, so ``E|y|^2 >= 1 - alpha``, and Jensen's inequality gives
R_S(alpha, d).
"""

gaussian_block_converse = Bound(
    name="gaussian_block_converse",
    quantity="bits of a block code whose distortion exceeds nmse with probability at most miss",
    side=Side.LOWER,
    value=d / 2 * (ChiSquareLog2Ratio(d, miss) - sp.log(nmse, 2)),
    reference=Reference("kostina2012", "converse by volumes", arxiv="1102.3944"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE}), Conclusion.BLOCK_LENGTH),
    examples=(
        Example(
            {"d": 100, "miss": "0.01", "nmse": "0.25"},
            "122.07774512987111562287432",
            "incomplete gamma root with 40 digits",
        ),
        Example(
            {"d": 1000, "miss": "0.01", "nmse": "0.25"},
            "1073.3074067594860235206582",
            "incomplete gamma root with 40 digits",
        ),
    ),
    unit="bit",
    latex_name=r"b",
)
"""Fixed-length codes at finite blocklength: the volume converse for a Gaussian vector.

Derivation.  X ~ N(0, s^2 I_d); a b-bit code errs, ``|X - C(X)|^2 > nmse s^2 d``, with probability at most ``miss``.
The set of good x lies in 2^b balls of radius sqrt(nmse s^2 d) and has probability at least 1 - miss.  Among sets of
that probability a centred ball has the least volume, of squared radius s^2 q with P(chi^2_d > q) = miss; comparing
volumes, 2^b >= (q/(d nmse))^(d/2).  A random key only averages such codes.
"""

gaussian_block_normal = Bound(
    name="gaussian_block_normal",
    quantity="approximate least bits of a block code, up to O(log d)",
    side=Side.TIGHT,
    value=-d / 2 * sp.log(nmse, 2) + sp.sqrt(d / 2) / sp.log(2) * NormalUpperQuantile(miss),
    reference=Reference("kostina2012", "Gaussian dispersion", arxiv="1102.3944"),
    status=Status.RECALLED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE}), Conclusion.BLOCK_LENGTH, known_up_to="O(log d) bits"),
    examples=(
        Example(
            {"d": 100, "miss": "0.01", "nmse": "0.25"},
            "123.7319923281564136414652",
            "inverse error function with 40 digits",
        ),
        Example(
            {"d": 1000, "miss": "0.01", "nmse": "0.25"},
            "1075.047149170616392859342",
            "inverse error function with 40 digits",
        ),
    ),
    unit="bit",
    latex_name=r"b^*",
)
"""Fixed-length codes at finite blocklength: the normal approximation for a Gaussian vector.

The dispersion of the Gaussian source is log2(e)^2/2, so the least number of bits is d/2 log2(1/nmse) +
sqrt(d/2) log2(e) Q^-1(miss) + O(log d).  Quoted; it lies between ``gaussian_block_converse`` and
``gaussian_block_miss`` inverted, which bound it rigorously.
"""

gaussian_block_miss = Bound(
    name="gaussian_block_miss",
    quantity="probability that the best b-bit block code exceeds the distortion nmse on a Gaussian vector",
    side=Side.UPPER,
    value=RandomCodeMiss(bits, d, nmse, radius),
    assuming=(sp.Ge(d, 2),),
    reference=Reference("kostina2012", "random coding on a sphere", arxiv="1102.3944"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE, Property.RANDOM_BLOCK_CODE}), Conclusion.BLOCK_MISS),
    examples=(
        Example(
            {"bits": 125, "d": 100, "nmse": "0.25", "radius": "0.87"},
            "0.04382329068",
            "mpmath quadrature of the incomplete beta function",
        ),
    ),
    free=Free(radius, sp.Integer(0), sp.Integer(2)),
    note="The value is not certifiable: it is an integral over an integral, evaluated in float64.",
    latex_name=r"\varepsilon",
)
"""Fixed-length codes at finite blocklength: an achievable probability of exceeding the distortion.

Derivation.  Draw M = floor(2^b) codewords uniformly on the sphere of radius r s sqrt(d): a fraction of a codeword does
not exist.  Given ``|x|^2 = z s^2 d`` each is within the allowed distance independently with probability p(z), so all
fail with probability (1 - p)^M <= exp(-M p); average over z.  Some codebook is at least as good as the average, and any
r is valid.  Inverting the value in b gives a length that suffices; ``gaussian_block_converse`` gives one that is
necessary.
"""
