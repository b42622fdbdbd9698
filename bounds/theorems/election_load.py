"""Election coding: how many partitions a worker must hold so that liars never change the result.

Setting.  n = m workers, n odd, each sends the majority sign of the partitions it holds; b = f n of them send anything.

Derivation.  Let (n+1)/2 + b workers hold all partitions and every other one a single partition.  The b liars leave
(n+1)/2 votes of full majorities, all of them right: a majority.  That is ((n+1)/2 + b) n + (n-1)/2 - b partitions
in all, divided by n workers.  At b = (n-1)/2 it is full replication, the only way (a strict subset errs on some signs).
The threshold is b <= (n-1)/2.
"""

from fractions import Fraction

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import faulty_fraction, m

_full = (m + 1) / 2 + faulty_fraction * m

election_load = Bound(
    name="election_load",
    quantity="partitions a worker, on average, with which no f m liars change the elected sign",
    side=Side.UPPER,
    value=_full + (m - _full) / m,
    assuming=(sp.Le(_full, m),),
    reference=Reference("sohn2020", "deterministic codes; construction derived here", arxiv="1910.06093"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.SURE_ELECTION}), Conclusion.ELECTION_LOAD),
    examples=(
        Example({"m": 5, "faulty_fraction": Fraction(1, 5)}, "4.20000", "by hand: 4 full workers and one partition"),
        Example({"m": 3, "faulty_fraction": Fraction(1, 3)}, "3.00000", "full replication"),
    ),
    latex_name=r"r",
)
