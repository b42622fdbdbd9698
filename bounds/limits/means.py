"""Bits of the mean of m vectors: messages to one server, exchanges between workers, and schemes near the limits."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.elementary import FusedDifference, Log2OnePlus, OneMinusPowerOfTwo
from ..special.sphere_rate import SphereRate
from ..symbols import bits, d, m, mse, nmse, sigma2, word_bits

mean_estimation = Bound(
    name="mean_estimation",
    quantity="largest mean square error, over theta, of an estimate of a Gaussian mean from m messages",
    side=Side.LOWER,
    value=sigma2 * d / (m * OneMinusPowerOfTwo(2 * bits / d)),
    assuming=(sp.Gt(bits, 0),),
    reference=Reference("barnes2019", "Fisher information of messages, sharp constant", arxiv="1902.02890"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.GAUSSIAN_SAMPLES, Property.INDEPENDENT_MESSAGES, Property.SELF_DELIMITING}),
        Conclusion.MEAN_SQUARE_ERROR,
    ),
    examples=(
        Example({"bits": 100, "d": 100, "m": 100, "sigma2": 1}, "1.333333333333333", "4/3 by hand"),
        Example({"bits": 10, "d": 100, "m": 10, "sigma2": 1}, "77.25023958872575626793", "40 digits"),
    ),
    note="sigma2 is the variance of one coordinate of one sample.",
    latex_name=r"\mathrm{MSE}",
)
"""Distributed mean estimation, statistical: m clients, one Gaussian sample each, b bits each.

Derivation.  Client i holds X_i ~ N(theta, s^2 I_d) and sends b bits, independently of the others given the shared key.
The score of a message is ``S = E[X - theta | M]/s^2``, and ``E|X - theta - E[X - theta | M]|^2 >= s^2 d 4^(-b/d)`` by
``gaussian_bits``; so the trace of its Fisher information, ``E|S|^2``, is at most (d/s^2)(1 - 4^(-b/d)) at every theta.
Informations add over clients, and the van Trees inequality with an ever wider prior gives sup_theta MSE >= d^2/trace =
s^2 d/(m (1 - 4^(-b/d))).  Without the bit limit it is s^2 d/m.
"""

mean_estimation_bits = Bound(
    name="mean_estimation_bits",
    quantity="expected bits of one client in estimating the mean of m uniform directions",
    side=Side.LOWER,
    value=SphereRate(m * mse, FusedDifference(1, m, mse), d),
    assuming=(sp.Ge(d, 2), sp.Lt(m * mse, 1)),
    reference=Reference("isik2023", "empirical mean estimation", arxiv="2306.04924"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.RANDOM_DIRECTIONS, Property.INDEPENDENT_MESSAGES, Property.SELF_DELIMITING}),
        Conclusion.CLIENT_MEAN_MESSAGE,
    ),
    examples=(Example({"d": 3, "m": 10, "mse": "0.01"}, "3.84173269541091515936938521", "R_S(.1, 3) with 40 digits"),),
    unit="bit",
    latex_name=r"E\,b",
)
"""Distributed mean estimation, empirical: bits each client needs for the mean of m independent uniform directions.

Derivation.  Given all messages and the key the X_i stay independent, so the error of any estimate of their mean is at
least ``(1/m^2) sum E|X_i - E[X_i | M_i]|^2``, an average of the clients' distortions divided by m.  R_S, the
information rate-distortion function of one direction (see ``sphere_bits``), is convex in the distortion, so the average
number of bits is at least R_S of the average distortion, which is at most m MSE.
"""

mean_received_rate = Bound(
    name="mean_received_rate",
    quantity="bits per coordinate that a worker receives to know the mean of m independent Gaussian vectors",
    side=Side.LOWER,
    value=Log2OnePlus(FusedDifference(m - 1, m, nmse) / (m * nmse)) / 2,
    assuming=(sp.Lt(m * nmse, m - 1),),
    reference=Reference("ratedist", "cut around one worker, Gaussian source"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.GAUSSIAN_VECTORS, Property.SELF_DELIMITING}),
        Conclusion.RECEIVED_RATE,
    ),
    examples=(
        Example({"m": 4, "nmse": "0.01171875"}, "3.0000000000", "log2(.75/.01171875)/2 = log2(64)/2, by hand"),
        Example({"m": 2, "nmse": "0.125"}, "1.00000000", "log2(4)/2, by hand"),
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
"""Bits that every worker has to receive before it knows the mean of m independent Gaussian vectors.

Setting.  Worker i holds x_i, all coordinates of all vectors independent N(0, s^2).  After any number of messages on
any network each worker states the mean within a mean square error of ``nmse`` times s^2/m, the mean's own variance.
Messages are self-delimiting; a shared key is free.

Derivation, by a cut around one worker.  Let T be the sum of the other vectors over m: independent of (x_i, key), of
variance v = (m - 1) s^2/m^2 in every coordinate.  What worker i states is a function of (x_i, key) and of the messages
R that it received, so T is known from (x_i, key, R) within nmse s^2/m a coordinate.  Then:

``E length of R >= H(R | x_i, key) >= I(T; R | x_i, key) = h(T) - h(T | x_i, key, R) >= (d/2) log2(v m/(nmse s^2))``,

the last step as in ``gaussian_bits``.  This holds for every worker, and so on average.  What is received on average is
sent.

Two workers attain it: each sends the other its vector (``gathered_rate`` at m = 2).  For more, ``mean_exchange_rate``
is a larger lower limit at small errors, nearly twice this one.
"""

_half = (m - 2) / 2
_excess = FusedDifference((m - 1) * (m - 2), m**2, nmse) / (m**2 * nmse)  # x - 1

mean_exchange_rate = Bound(
    name="mean_exchange_rate",
    quantity="bits per coordinate that a worker receives, all to know the mean of m >= 3 independent Gaussian vectors",
    side=Side.LOWER,
    value=mean_received_rate.value + (_half * Log2OnePlus(_excess) - Log2OnePlus(_half * _excess / (1 + _excess))) / m,
    assuming=(sp.Le(m**2 * nmse, (m - 1) * (m - 2)),),
    reference=Reference("ratedist", "submodularity of messages and a noisy sum, Gaussian source"),
    status=Status.PROVED,
    setting=mean_received_rate.setting,
    examples=tuple(
        Example({"m": workers, "nmse": error}, value, "largest value of (2) over nu, 40 digits, mpmath")
        for workers, error, value in (
            (3, "0.01", "3.58738266578"),
            (4, "0.01", "4.17645534909"),
            (8, "0.21", "1.44538400023"),
            (16, "0.0054", "6.70347190610"),
            (16, "0.001", "8.98394670966"),
            (64, "1e-6", "19.4974615959"),
            (10**6, "0.001", "9.96575250336"),
        )
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m; above its largest nmse use mean_received_rate.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
"""Bits that m workers receive on average before each knows the mean of m independent Gaussian vectors, three or more.

Setting.  As in ``mean_received_rate``: worker i holds X_i, all coordinates independent N(0, s^2), and states the mean
within ``nmse`` times s^2/m, on average over the workers.  Any network of messages from one worker to another, any
number of rounds; keys, private and shared, are free.

Derivation.  Fix the keys.  S = sum X_i; D = m nmse s^2 is the error of S; c = m/(m - 1).  W_i are all messages that i
sends or receives, P all messages.  Entropies and variances are per coordinate.  Let Y = S + N with N ~ N(0, nu D)
independent of all else, and H(A, Y) = H(A) + h(Y|A) for messages A.  If C is a function of A and of B, then ::

    H(A, Y) + H(B, Y) - H((A, B), Y) - H(C, Y) = I(A; B | C, Y) >= 0.                                             (1)

1. E_k are the messages between k and the workers before it, F_k those between k and the workers after it.  E_k is a
   function of (W_1 .. W_{k-1}) and of W_k.  Add (1) for k = 2 .. m, then the same in reverse order, with w = sum_i
   H(W_i, Y): ``2 w >= 2 H(P, Y) + sum_{k>1} H(E_k, Y) + sum_{k<m} H(F_k, Y)``.  For 1 < k < m the pair (E_k, F_k) is
   W_k, and (1) with an empty C gives H(E_k, Y) + H(F_k, Y) >= H(W_k, Y) + h(Y).  E_m = W_m and F_1 = W_1.  So
   ``w >= 2 H(P, Y) + (m - 2) h(Y)``.
2. Worker i knows W_i from X_i and from what it receives.  All receive ``T >= sum H(W_i|X_i) = sum (H(W_i) - a_i)``
   bits, with a_i = I(W_i; X_i).
3. P is a function of the independent X_i: H(P) >= sum I(P; X_i), and I(P; X_i) >= a_i.  Together with 1 and 2, ::

       T >= sum I(P; X_i) + 2 h(Y|P) + (m - 2) h(Y) - sum h(Y|W_i).

4. Given P the X_i are independent; let v_i = E Var(X_i|P).  Worker i knows S from (X_i, W_i) within D_i, so sum_{j !=
   i} v_j <= D_i, and with sum D_i <= m D: sum v_i <= c D.  Gaussian vectors have the largest entropy, and log is
   concave: sum I(P; X_i) >= (m/2) log2(m s^2/(c D)) = (m/2) log2(1/(c nmse)).
5. h(Y|P) >= h(N).  Given W_i, X_i is independent of the other vectors and of P, so E Var(S|W_i) <= v_i + D_i.  Their
   sum is at most (c + m) D = m c D, and sum h(Y|W_i) <= (m/2) log2(2 pi e (c + nu) D).  h(Y) = log2(2 pi e (m s^2 + nu
   D))/2.  Insert: for every nu > 0, ::

       T >= (m/2) log2(1/(c nmse)) + ((m-2)/2) log2(nu + 1/nmse) + log2(nu) - (m/2) log2(c + nu).                 (2)

   Each term is convex in nmse, so (2) holds for random keys with the mean of nmse over the keys.
6. nu without end gives ``mean_received_rate``.  The best is nu = 2 c/(m - 2 - m c nmse), if that is positive.  With n =
   (m - 2)/2 and x = (m - 1)(m - 2)/(m^2 nmse) >= 1, a worker receives ::

       T/m >= mean_received_rate + (n log2(x) - log2(1 + n (1 - 1/x)))/m,

   in the limit of small nmse (1 - 1/m) log2(1/nmse) less about (log2(m) + 1.9)/m.  ``two_shot_rate`` is above it by
   1.25 bits at m = 16, by 1.01 at m = 1024.  What remains open is this bit, and whether it is the price of the ranks'
   agreement: nothing in the proof asks that all state the same mean, which two shots do.
"""

exact_sum_rate = Bound(
    name="exact_sum_rate",
    quantity="bits per coordinate that a worker receives, all to know the exact sum of m independent words",
    side=Side.LOWER,
    value=2 * (1 - 1 / m) * word_bits,
    reference=Reference("ratedist", "submodularity of messages; a ring all-reduce attains it"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.UNIFORM_WORDS, Property.SELF_DELIMITING, Property.EXACT_SUM}),
        Conclusion.RECEIVED_RATE,
    ),
    examples=(
        Example({"m": 4, "word_bits": 8}, "12.0000000000", "ring of 4: 3 + 3 shards of 8/4 bits, by hand"),
        Example({"m": 2, "word_bits": 2}, "2.0000000000", "two workers send each other their words, by hand"),
    ),
    unit="bit",
    note="of any finite abelian group with 2^word_bits elements a coordinate; a ring all-reduce attains it.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
"""Bits that m workers receive on average before each knows the exact sum of m independent words.

Setting.  Worker i holds X_i, uniform on a finite abelian group, the X_i independent; here d integers of ``word_bits``
bits, added modulo 2^word_bits.  Any network of messages from one worker to another, any number of rounds; keys, private
and shared, are free.  Every worker ends with S = sum X_i, surely.

Derivation.  Fix the keys.  Entropies are in units of H(X_i).  W_i are all messages that i sends or receives.

1. W_i determines X_i and S.  Given W_i, X_i and the other vectors are independent.  The others know S from their
   vectors and W_i, hence X_i: H(X_i|W_i) = H(X_i|W_i, X_j for j != i) = 0.  Worker i knows S from X_i and W_i.
2. Worker i knows W_i from X_i and from what it receives.  With w = sum H(W_i) all receive ``T >= sum H(W_i|X_i) = w -
   m``.
3. E_k are the messages between k and the workers before it.  E_k and S are functions of (W_1 .. W_{k-1}) and of W_k, so
   ``H(W_1 .. W_{k-1}) + H(W_k) >= H(W_1 .. W_k) + H(E_k, S)``.  Add over k = 2 .. m; all W determine all X:
   ``w >= m + sum_{k>1} H(E_k, S)``.
4. In reverse order, with F_k the messages between k and the workers after it: ``w >= m + sum_{k<m} H(F_k, S)``.  For 1
   < k < m the pair (E_k, F_k) is W_k, so H(E_k, S) + H(F_k, S) >= H(W_k) + H(S) = H(W_k) + 1.  E_m = W_m, F_1 = W_1.
   Add 3 and 4: 2 w >= 2 m + w + m - 2, so w >= 3 m - 2 and T >= 2 (m - 1).

A ring all-reduce, a sum by owners of shards and ``operators.summed.SharedScale`` attain it: no code does better.  A
network whose switches add is another matter, for they hold no X_i.
"""

gathered_rate = Bound(
    name="gathered_rate",
    quantity="bits per coordinate that a worker receives, gathering long blocks for the mean of m independent vectors",
    side=Side.UPPER,
    value=(m - 1) * mean_received_rate.value,
    assuming=mean_received_rate.assuming,
    reference=Reference("ratedist", "one stage of long blocks, the own vector exact"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.INDEPENDENT_VECTORS, Property.GATHERED_LONG_BLOCKS, Property.GATHERED_MEAN}),
        Conclusion.RECEIVED_RATE,
    ),
    examples=(
        Example({"m": 4, "nmse": "0.01171875"}, "9.0000000000", "three vectors of three bits, by hand"),
        Example({"m": 2, "nmse": "0.125"}, "1.00000000", "log2(4)/2, by hand"),
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
"""Bits that gathering needs for the mean of m independent vectors, at the rate-distortion limit.

Setting.  Every coordinate has variance s^2; every worker receives the m - 1 other vectors through a code of distortion
E, as in ``two_shot_rate``, and uses its own as it is (so the workers' results differ).

Derivation.  The error is (m - 1) E s^2/m^2: nmse = (1 - 1/m) E, at (m - 1) log2(1/E)/2 bits.  That is m - 1 times
``mean_received_rate``: gathering is optimal for two workers.
"""

_root = sp.sqrt(1 - nmse)

two_shot_rate = Bound(
    name="two_shot_rate",
    quantity="bits per coordinate that a worker receives in two shots of long blocks, m independent vectors",
    side=Side.UPPER,
    value=(1 - 1 / m) * (Log2OnePlus(_root * (1 + _root) / nmse) + Log2OnePlus(-1 / m) / 2),
    assuming=(sp.Ge(m, 2), sp.Le(nmse, 1 - 1 / m**2)),
    reference=Reference("ratedist", "two stages of long blocks, the owner's shard exact"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.INDEPENDENT_VECTORS, Property.OWNED_LONG_BLOCKS, Property.TWO_SHOT_MEAN}),
        Conclusion.RECEIVED_RATE,
    ),
    examples=(
        Example(
            {"m": 4, "nmse": "0.4375"},
            "1.3443609",
            "by hand: root .75, e = 1/4: 3/4 (2 - .20751875), log2(3/4)/2 = -.20751875",
        ),
        Example({"m": 2, "nmse": "0.75"}, "0.2500000", "by hand: e = 1/2: (1 - 1/2)/2"),
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
"""Bits that two shots need for the mean of m independent vectors, at the rate-distortion limit of both stages.

Setting.  Every coordinate has variance s^2.  An owner keeps its own shard as it is; the m - 1 other shards reach it
through a code of distortion E a coordinate, relative to the variance, and the mean goes to all through one of
distortion E'.  Both codes serve vectors of any law: under a shared uniform rotation a contractive operator needs
log2(1/alpha)/2 bits per coordinate as the length of the vector grows (``spherical_compression_bits``).  Scaled to the
least error, its error has mean zero and is orthogonal to its output.

Derivation. q = 1 - 1/m.  Errors of different workers are uncorrelated: the owner's mean y is q E s^2/m from the mean,
orthogonal to it, and has variance (1 - q E) s^2/m; the second stage adds E' of this, orthogonally.  So:

``nmse = 1 - (1 - q E)(1 - E')``.

A worker sends and receives q (log2(1/E) + log2(1/E'))/2, least at q E = E' = 1 - sqrt(1 - nmse) =: e, which needs e <=
q.  With 1/e = (1 + sqrt(1 - nmse))/nmse this is q (log2(q)/2 + log2(1/e)).

At small errors no exchange needs less by more than 1.42 bits for three workers or more, 1.01 for a thousand
(``mean_exchange_rate``).
"""

shared_scale_rate = Bound(
    name="shared_scale_rate",
    quantity="bits per coordinate of the coded sum of m workers' dithered integers of one scale",
    side=Side.UPPER,
    value=sp.log(sp.pi * sp.E / 6 * (m * (1 + 1 / nmse) + 1), 2) / 2,
    reference=Reference("ratedist", "largest entropy of an integer with a given variance"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.INDEPENDENT_VECTORS, Property.DITHERED_SHARED_SCALE, Property.WORD_MEAN}),
        Conclusion.SUM_RATE,
    ),
    examples=(
        Example({"m": 1, "nmse": "0.5"}, "1.25461", "log2(pi e/6 * 4)/2 = 1 + .25461, by hand"),
        Example({"m": 16, "nmse": "0.0625"}, "4.30099", "log2(pi e/6 * 273)/2 = 4.04638 + .25461, by hand"),
    ),
    unit="bit",
    note="nmse is relative to the variance of the mean, s^2/m.",
    latex_name=r"\bar b_{\mathrm{sum}}",
)
"""Bits of the sum of m workers' integers on one shared scale, with an ideal entropy coder.

Setting.  Every coordinate of every vector has variance s^2, independently over workers.  Worker i rounds x_i/h + u_i
to the nearest integer n_i, with a dither u_i uniform in (-1/2, 1/2) that everybody knows and subtracts at the end.
Then n_i - u_i - x_i/h is uniform in (-1/2, 1/2) and independent of x_i; the mean has error h^2/(12 m) a coordinate, so
that ``nmse``, relative to the mean's variance s^2/m, is h^2/(12 s^2).

Derivation.  Given the dither, N = sum n_i is an integer whose variance is, on average over the dither, at most sum
Var(n_i - u_i) = m (s^2/h^2 + 1/12).  A uniform variable on (0, 1) added to N makes a density of the entropy of N; the
Gaussian law has the largest entropy at a given variance, and the logarithm is concave, so that
``H(N | u) <= log2(2 pi e (m (s^2/h^2 + 1/12) + 1/12))/2``.  Insert s^2/h^2 = 1/(12 nmse).

Against one vector at the same nmse the sum costs log2(m)/2 more bits, and pi e/6 = 1.42 is the price of rounding one
coordinate at a time.  Words of fixed length pay for the peak instead: ``shared_scale_error``.
"""
