"""Theorem 1 for functions with a Lipschitz Hessian: the price of local steps is of fourth order in eta.

Setting.  All workers sample the same L-smooth F, ``|H(x) - H(y)| <= Q |x - y|`` for its Hessian, every Hessian >= -rho,
eta L <= 1, rounds start from the mean.  Given the past, the noise n_i of worker i has mean 0 and is independent over
the workers, with E|n_i|^2 <= sigma2 and E|n_i|^4 <= kurtosis sigma2^2.  At a step t_i = E|n_i|^2 n_i is the same for
all workers (additive noise) or 0 (symmetric noise).

Derivation.  d_i = x^i - xbar, ``V = mean |d_i|^2``, g_i = grad F(x^i), gbar = mean g_i, b = grad F(xbar),
u = 1/m.

1. The d_i have mean 0, so gbar - b = mean [g_i - b - H(xbar) d_i], and each is at most ``(Q/2) |d_i|^2`` long:
   ``|gbar - b|^2 <= (Q^2/4) V^2``.
2. The descent lemma as in ``pasgd_convex_sharp``: ``avg E|b|^2 <= 2 gap/(eta K) + eta L sigma2/m + (Q^2/4) avg E V^2``.
3. One step.  d_i' = a_i - eta (n_i - nbar), a_i = d_i - eta (g_i - gbar).  x -> x - eta grad F(x) is sqrt(G)-Lipschitz
   with G = (1 + eta rho)^2, so ``P = mean |a_i|^2 <= G V`` (by pairs).  V' = P - 2 eta Z + eta^2 A with
   Z = mean <a_i, n_i> and ``A = mean |n_i - nbar|^2 = u (1-u) sum |n_i|^2 - u^2 sum_{i != j} <n_i, n_j>``.  Given the
   past:

   * E Z = 0, E Z^2 <= u sigma2 P, E A <= (1-u) sigma2, so E V' <= G V + (1-u) eta^2 sigma2;
   * E A^2 <= a sigma2^2, a = (1-u)^2 (1 + (kurtosis-1) u) + 2 u^2 (1-u) = 1 - u^2 + (1-u)^2 (kurtosis-3) u, because
     mixed terms of A^2 vanish and E<n_i, n_j>^2 <= sigma2^2;
   * E Z A = u^2 (1-u) sum <a_i, t_i> = 0, because sum a_i = 0.

   Hence ``E V'^2 <= G^2 E V^2 + 2 (1+u) eta^2 sigma2 G E V + a eta^4 sigma2^2``.
4. From V = 0, after k steps E V <= (1-u) eta^2 sigma2 s_k with s_k = 1 + G + ... + G^(k-1), and ::

       E V^2 <= eta^4 sigma2^2 ((1-u^2) 2 G s_k s_{k-1}/(1+G) + a (1 + G^2 + ... + G^(2k-2))).

   Averaged over k < tau, with y = G - 1, the first is (1-u^2) PairGrowth(y, tau), the second a MeanGrowth(y (2+y),
   tau).

``pasgd_third_order_convex`` is rho = 0: PairGrowth = (tau-1)(tau-2)/3 and MeanGrowth = (tau-1)/2.

``pasgd_third_order_strongly_convex``: if every Hessian is >= mu > 0, G = (1 - eta mu)^2 < 1.  E V and E V^2 grow with k
and stay below the fixed points of the recursions of 3, EV = (1-u) eta^2 sigma2/(1-G) and EV2 = (2 (1+u) eta^2 sigma2 G
EV + a eta^4 sigma2^2)/(1-G^2).  The price is at most (Q^2/4) EV2 for every tau: averaging seldom has a finite price.

``pasgd_third_order_any_noise`` drops the assumption on t_i.  ``|t_i| <= sqrt(kurtosis) sigma2^(3/2)``, so
``4 eta^3 |E Z A| <= 2 u (1-u) (eta^2 sigma2 P + kurtosis eta^4 sigma2^2)``: 2 (1+u) grows by 2 u (1-u), and a by
2 kurtosis u (1-u).
"""

from collections.abc import Mapping
from fractions import Fraction

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..special.growth import MeanGrowth, PairGrowth
from ..symbols import K, L, eta, gap, hessian_lipschitz, kurtosis, m, mu, rho, sigma2, tau

_STEPS = 2 * gap / (eta * K) + eta * L * sigma2 / m
_NOISE = SAME_DATA | {Property.HESSIAN_LIPSCHITZ, Property.BOUNDED_KURTOSIS, Property.LOCAL_SGD}
_EQUAL = _NOISE | {Property.EQUAL_THIRD_MOMENTS}
_SQUARED = (hessian_lipschitz * eta**2 * sigma2 / 2) ** 2
_PAIRS = 1 - 1 / m**2  # half of 2 (1+u) times (1-u)
_ONCE = (1 - 1 / m) ** 2 * (1 + (kurtosis - 1) / m) + 2 * (1 - 1 / m) / m**2
_GROWTH = eta * rho * (2 + eta * rho)
_LOSS = eta * mu * (2 - eta * mu)  # 1 - G of a strongly convex F
_LATEX = r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2"
_AT: Mapping[str, int | Fraction | str] = {
    "gap": 1,
    "eta": "0.1",
    "L": 1,
    "sigma2": 1,
    "tau": 5,
    "m": 4,
    "K": 100,
    "hessian_lipschitz": 1,
    "kurtosis": 3,
}
_LONG: Mapping[str, int | Fraction | str] = {
    **_AT,
    "gap": 0,
    "eta": "0.05",
    "hessian_lipschitz": "0.5",
    "tau": 55,
    "sigma2": 1,
}


def _price(pairs: sp.Expr, once: sp.Expr) -> sp.Expr:
    return _SQUARED * (pairs * PairGrowth(_GROWTH, tau) + once * MeanGrowth(_GROWTH * (2 + _GROWTH), tau))


pasgd_third_order = Bound(
    name="pasgd_third_order",
    quantity="average over K local steps of E|grad F(xbar)|^2, Lipschitz Hessians >= -rho",
    side=Side.UPPER,
    value=_STEPS + _price(_PAIRS, _ONCE),
    assuming=(sp.Le(eta * L, 1), sp.Le(rho, L)),
    reference=Reference("ratedist", "third-order form of wang2018, Theorem 1, by the recursion of E V^2"),
    status=Status.PROVED,
    setting=Setting(_EQUAL | {Property.HESSIAN_ABOVE}, Conclusion.GRADIENT),
    examples=(
        Example({**_AT, "rho": 0}, "0.225140625", "by hand: .2 + .025 + (1e-4/24) 4 (15/16) 9"),
        Example(
            {**_LONG, "rho": "0.1"},
            "0.013045947850",
            "recursion of E V and E V^2 in fractions, 55 steps: .0125 + 5.45947850e-4",
        ),
    ),
    latex_name=_LATEX,
)

pasgd_third_order_any_noise = Bound(
    name="pasgd_third_order_any_noise",
    quantity="average over K local steps of E|grad F(xbar)|^2, Lipschitz Hessians >= -rho, any third moments",
    side=Side.UPPER,
    value=_STEPS + _price(_PAIRS + (1 - 1 / m) ** 2 / m, _ONCE + 2 * kurtosis * (1 - 1 / m) / m),
    assuming=pasgd_third_order.assuming,
    reference=pasgd_third_order.reference,
    status=Status.PROVED,
    setting=Setting(_NOISE | {Property.HESSIAN_ABOVE}, Conclusion.GRADIENT),
    examples=(
        Example(
            {**_AT, "rho": 0},
            "0.2252109375",
            "by hand: .225 + (1e-4/4) ((15/16 + 9/64) 4 + (15/16 + 9/8) 2)",
        ),
    ),
    latex_name=_LATEX,
)

pasgd_third_order_convex = Bound(
    name="pasgd_third_order_convex",
    quantity="average over K local steps of E|grad F(xbar)|^2, F convex with a Lipschitz Hessian",
    side=Side.UPPER,
    value=_STEPS
    + _SQUARED
    * (tau - 1)
    * (1 - 1 / m)
    * (2 * (1 + 1 / m) * (tau - 1) + (1 - 2 / m) * (1 - 3 / m) + 3 * (1 - 1 / m) * (kurtosis - 1) / m)
    / 6,
    assuming=(sp.Le(eta * L, 1),),
    reference=pasgd_third_order.reference,
    status=Status.PROVED,
    setting=Setting(_EQUAL | {Property.CONVEX}, Conclusion.GRADIENT),
    examples=(
        Example(_AT, "0.225140625", "by hand: .2 + .025 + (1e-4/24) 4 (15/16) 9"),
        Example(
            {**_AT, "gap": 0, "eta": "0.2", "tau": 8, "m": 16},
            "0.01947265625",
            "by hand: .0125 + (.0016/24) 7 (255/256) 15",
        ),
        Example(
            {**_LONG, "tau": 64, "kurtosis": 9},
            "0.012998724365",
            "recursion of E V and E V^2 in fractions, 64 steps: .0125 + 4.98724365e-4",
        ),
    ),
    latex_name=_LATEX,
)

pasgd_third_order_strongly_convex = Bound(
    name="pasgd_third_order_strongly_convex",
    quantity="average over K local steps of E|grad F(xbar)|^2, F mu-strongly convex with a Lipschitz Hessian, any tau",
    side=Side.UPPER,
    value=_STEPS + _SQUARED * (2 * _PAIRS * (1 - _LOSS) / _LOSS + _ONCE) / (_LOSS * (2 - _LOSS)),
    assuming=(sp.Le(eta * L, 1), sp.Le(mu, L), sp.Lt(eta * mu, 1)),
    reference=pasgd_third_order.reference,
    status=Status.PROVED,
    setting=Setting(_EQUAL | {Property.STRONGLY_CONVEX}, Conclusion.GRADIENT),
    examples=(
        Example(
            {**{k: v for k, v in _LONG.items() if k != "tau"}, "mu": "0.1"},
            "0.01618048882",
            "fixed points .187969925 and .0588878211 in fractions: .0125 + (1/16) .0588878211",
        ),
    ),
    latex_name=_LATEX,
)
