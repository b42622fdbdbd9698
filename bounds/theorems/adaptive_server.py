"""Local SGD with an adaptive server optimizer (FedOpt): FedAdagrad, FedAdam and FedYogi."""

from fractions import Fraction

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import NOISE, Setting
from ..symbols import (
    G,
    L,
    adaptivity,
    eta,
    gap,
    gradient_max,
    m,
    rounds,
    server_decay,
    server_eta,
    sigma2,
    tau,
)

_REFERENCE = Reference("reddi2021", "Theorems 1 and 2, published up to O(); constants derived here", arxiv="2003.00295")
_NOTE = "For all m workers in every round, no momentum at the server (beta_1 = 0), and v = 0 at the start."
_AT: dict[str, int | Fraction | str] = {
    "gap": 1,
    "eta": "0.1",
    "server_eta": 1,
    "L": 1,
    "G": 1,
    "gradient_max": 1,
    "sigma2": 1,
    "tau": 2,
    "m": 4,
    "rounds": 10,
}
_MEAN = r"\frac1R\sum_r E\|\nabla F(x_r)\|^2"
_step = eta * tau * gradient_max  # no coordinate of a mean change is larger


def _setting(method: Property) -> Setting:
    needs = {Property.EVERY_SMOOTH, Property.BOUNDED_BELOW, Property.SECOND_MOMENT, Property.BOUNDED_COORDINATES}
    return Setting(NOISE | needs | {method}, Conclusion.ROUND_GRADIENT)


def _average(largest: sp.Expr, load: sp.Expr) -> sp.Expr:
    """Return the bound whose denominators are at most ``largest`` where ``eta tau load <= adaptivity``."""
    progress = 2 * gap / (server_eta * eta * tau * rounds)
    drift = eta**2 * L**2 * G**2 * (tau - 1) * (2 * tau - 1) / (6 * adaptivity)
    return largest * (progress + drift + eta * load * sigma2 / (m * adaptivity**2))


_adam_load = 4 * sp.sqrt(1 - server_decay) * gradient_max + 2 * L * server_eta

fedadam = Bound(
    name="fedadam",
    quantity="average over the rounds of E|grad F|^2 where a round starts, FedAdam, different data",
    side=Side.UPPER,
    value=_average(sp.sqrt(server_decay) * _step + adaptivity, _adam_load),
    assuming=(sp.Le(eta * tau * _adam_load, adaptivity),),
    reference=_REFERENCE,
    status=Status.PROVED,
    setting=_setting(Property.FEDADAM),
    examples=(
        Example(
            {**_AT, "adaptivity": 1, "server_decay": "0.64"},
            "1.29340",
            "by hand: 1.16 * (1 + .005 + .1 * 4.4/4)",
        ),
    ),
    note=_NOTE,
    latex_name=_MEAN,
)
"""FedAdam: local SGD whose mean change is a gradient for Adam at the server (FedOpt).

Setting.  From x each of m workers makes tau steps of SGD with step eta on its own F_i; D is the mean of the changes.
With a = adaptivity (tau in the paper) and b = server_decay the server makes, in every coordinate, ::

    v+ = b v + (1 - b) D^2,  x+ = x + server_eta D/(sqrt(v+) + a),  v = 0 at the start.

Every F_i is L-smooth, ``E|g|^2 <= G^2``, and no coordinate of a gradient is above g = gradient_max in absolute value.

Derivation.  Let P = 1/(sqrt(b v) + a), which the past fixes, and Q = 1/(sqrt(v+) + a) <= P <= 1/a, by coordinates.
Smoothness, with s = server_eta: F(x+) <= F(x) + s <grad F, P D> + s <grad F, (Q - P) D> + ``L s^2 |Q D|^2/2``.

1. Let ``|z|_P^2`` be the sum of P_j z_j^2, and h the mean over workers and steps of grad F_i at the local models.
   E D = -eta tau E h, so that by 2 <u, v> = ``|u|^2 + |v|^2 - |u - v|^2`` the first product has the mean ::

       -(eta tau/2)(|grad F|_P^2 + E|h|_P^2 - E|grad F - h|_P^2).

   After t steps a worker is at most t eta G from x in mean square (Minkowski), hence ::

       E|grad F - h|_P^2 <= L^2 eta^2 G^2 (tau - 1)(2 tau - 1)/(6 a).

2. sqrt(v+) - sqrt(b v) <= sqrt(1 - b) ``|D|``, so P - Q <= P sqrt(1 - b) ``|D|/a``.  With ``|grad_j F| <= g`` the
   second product is at most sqrt(1 - b) (g/a) ``|D|_P^2``; and ``|Q D|^2 <= |D|_P^2/a``.
3. The noise of different workers and steps is uncorrelated: ``E|D|_P^2 <= 2 eta^2 tau sigma2/(m a) + 2 eta^2 tau^2
   E|h|_P^2``.  The condition eta tau (4 sqrt(1 - b) g + 2 L s) <= a lets the terms with h cancel.

``|D_j| <= eta tau g``, so v <= (eta tau g)^2 and ``|grad F|^2 <= (sqrt(b) eta tau g + a) |grad F|_P^2``.  Sum over the
rounds and divide by s eta tau R/2.

With eta ~ 1/(L tau sqrt(R)), server_eta ~ sqrt(m tau) and a ~ g/L it is of order 1/sqrt(m tau R), as published.  At
v = v_0 > 0 at the start the proof holds with max(eta tau g, sqrt(v_0)) in the place of eta tau g in its first factor.
"""

_adagrad_load = 4 * gradient_max + 2 * L * server_eta

fedadagrad = Bound(
    name="fedadagrad",
    quantity="average over the rounds of E|grad F|^2 where a round starts, FedAdagrad, different data",
    side=Side.UPPER,
    value=_average(sp.sqrt(rounds - 1) * _step + adaptivity, _adagrad_load),
    assuming=(sp.Le(eta * tau * _adagrad_load, adaptivity),),
    reference=_REFERENCE,
    status=Status.PROVED,
    setting=_setting(Property.FEDADAGRAD),
    examples=(
        Example(
            {**_AT, "adaptivity": 2},
            "2.70400",
            "by hand: 2.6 * (1 + .0025 + .1 * 6/16)",
        ),
    ),
    note=_NOTE,
    latex_name=_MEAN,
)
"""FedAdagrad: local SGD whose mean change is a gradient for Adagrad at the server (FedOpt).

Setting.  As in ``fedadam``, with v+ = v + D^2.

Derivation.  That of ``fedadam`` with P = 1/(sqrt(v) + a): sqrt(v+) - sqrt(v) <= ``|D|`` puts 1 in the place of sqrt(1 -
b), and v <= (R - 1)(eta tau g)^2 where the last round starts.
"""

_yogi_load = 4 * sp.sqrt(1 - server_decay) * gradient_max + 2 * L * server_eta / sp.sqrt(server_decay)

fedyogi = Bound(
    name="fedyogi",
    quantity="average over the rounds of E|grad F|^2 where a round starts, FedYogi, different data",
    side=Side.UPPER,
    value=_average(sp.sqrt(2 - server_decay) * _step + adaptivity, _yogi_load),
    assuming=(sp.Le(eta * tau * _yogi_load, adaptivity),),
    reference=_REFERENCE,
    status=Status.PROVED,
    setting=_setting(Property.FEDYOGI),
    examples=(
        Example(
            {**_AT, "adaptivity": 1, "server_decay": "0.64"},
            "1.390476",
            "by hand: (.2 sqrt(1.36) + 1)(1 + .005 + .1 * 4.9/4) with sqrt(1.36) = 1.1661904",
        ),
    ),
    note=_NOTE,
    latex_name=_MEAN,
)
"""FedYogi: local SGD whose mean change is a gradient for Yogi at the server (FedOpt).

Setting.  As in ``fedadam``, with v+ = v - (1 - b) D^2 sign(v - D^2).

Derivation.  That of ``fedadam`` with P = 1/(sqrt(v) + a).  Since ``|v+ - v| <= (1 - b) D^2``, ``|sqrt(v+) - sqrt(v)| <=
sqrt(1 - b) |D|``.  v may fall, but v+ >= b v, so Q <= P/sqrt(b) and ``|Q D|^2 <= |D|_P^2/(a sqrt(b))``.  v grows only
where it is below D^2, and to less than (2 - b)(eta tau g)^2.
"""
