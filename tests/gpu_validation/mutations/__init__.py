"""Wrong claims, bounds, records, operators, runs and transports on purpose: which of them would a run have noticed?

::

    bench = Bench()
    honest = bench.judge(bench.records)
    findings = [find(mutation, bench, honest) for mutation in MUTATIONS]

``python -m tests.gpu_validation.mutations`` prints the table and, with ``--out``, records it.
"""

from .bench import Bench as Bench
from .claims import CLAIMS
from .mutation import Finding as Finding
from .mutation import Mutation as Mutation
from .mutation import find as find
from .studies import STUDIES
from .theories import THEORIES
from .wrong_operators import WRONG_OPERATORS
from .wrong_runs import WRONG_RUNS

MUTATIONS: tuple[Mutation, ...] = (*CLAIMS, *THEORIES, *WRONG_OPERATORS, *WRONG_RUNS, *STUDIES)
