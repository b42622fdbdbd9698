"""Seconds that ``operators.laws.check`` takes with the standard budget, one JSON line a subject.

Run ``python docs/measure.py benchmarks/conformance.py > docs/data/conformance_seconds.jsonl``; four minutes: the first
example of every operator, after a quick check that compiles its kernels, and between them FUNCTIONS honest functions of
``docs/studies/honest_subjects.py``.  Processor seconds of the process, with one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from operators import all_operators
from operators.laws import Budget, check

sys.path.append(str(Path(__file__).parents[1] / "studies"))
from honest_subjects import RULES, function

SEED = 1
FUNCTIONS = 16
HEAD = {"seed": SEED}


def timed(subject: object, name: str, form: str, **stated: object) -> dict[str, Any]:
    """Return the seconds of one check."""
    started = time.process_time()
    report = check(subject, seed=SEED, **stated)
    seconds = round(time.process_time() - started, 2)
    return {"operator": name, "form": form, "ok": report.ok, "seconds": seconds}


def main(part: int = 0, parts: int = 1) -> Iterator[dict[str, Any]]:
    """One operator after the other, with a function between two; of several processes each measures one part."""
    operators = [cls.examples()[0] for cls in all_operators().values()]
    rules = list(RULES.items())[:: len(RULES) // FUNCTIONS][:FUNCTIONS]
    for op, named in list(zip_longest(operators, rules))[part::parts]:
        if named:
            name, rule = named
            yield timed(function(rule.rule), name, "function", claim=rule.claim, ceiling=rule.ceiling or None)
        if op:
            check(op, budget=Budget.quick(), seed=SEED)
            yield timed(op, repr(op), "codec")
