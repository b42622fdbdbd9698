"""Qsparse-local-SGD at a wall-clock time: local steps, a contractive compressor and error memory together.

Setting.  That of ``qsparse``, its times as in ``pasgd_wall_clock``.

Derivation.  As in ``pasgd_wall_clock``: ``qsparse`` holds for every whole number of rounds and depends on it by its
inverse alone.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Property
from ..setting import Setting
from ..symbols import K, inverse_rounds, tau
from .qsparse import qsparse

qsparse_wall_clock = Bound(
    name="qsparse_wall_clock",
    quantity=(
        "E of the average over workers and the local steps of the rounds ended by a time (of 1 at least) of "
        "|grad F(x^i)|^2, compressed with memory"
    ),
    side=Side.UPPER,
    value=qsparse.value.subs(K, tau / inverse_rounds),
    assuming=qsparse.assuming,
    reference=Reference("ratedist", "basu2019, Theorem 1, at a random number of rounds"),
    status=Status.PROVED,
    setting=Setting(qsparse.setting.needs | {Property.TIMES_APART, Property.ENDED_ROUNDS}, qsparse.setting.concludes),
    examples=(
        Example(
            {
                "gap": 1,
                "eta": "0.1",
                "L": 1,
                "sigma2": 1,
                "G": 1,
                "tau": 2,
                "m": 4,
                "alpha": "0.5",
                "inverse_rounds": "0.02",
            },
            "4.6600",
            "50 rounds of 2 steps, by hand: .4 + .1 + 8 * 13 * .04",
        ),
    ),
    note="the times are independent of the gradients; see bounds.runtime.rounds_by for E 1/N.",
    latex_name=r"E\frac1{mK}\sum_{i,k}\|\nabla F(x_k^i)\|^2",
)
