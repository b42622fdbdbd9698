"""Judge every wrong compressor of these tests in every form with the standard budget, and record what the kit said.

Settings: ``plain``; ``asleep``, 5 ms in every call of encode, decode or the function; ``loaded``, two busy loops beside
it.  One JSON line a check is appended to ``--out``; those already there are not repeated.

    python -m tests.operators.laws.product --out docs/data/wrong_compressors.jsonl
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from operators.laws import adapt, check

from .forms import FORMS
from .mutants import MUTANTS
from .test_forms import NO_FAULT, WRONG_MAPS
from .test_outside import ACCUSED
from .wrapper_mutants import WRAPPER_MUTANTS
from .wrong_functions import MEASURED, REPORTED

SETTINGS = {"plain": 1, "asleep": 6, "loaded": 1}  # and the processes that judge at a time
SLEEP_S = 0.005
SEED = 11


@dataclass(frozen=True)
class Case:
    """A wrong compressor in one form; ``judge(slowed)`` checks it, with ``slowed`` around what it calls."""

    what: str
    form: str
    judge: Callable[[Callable[..., Any]], Any]


def cases() -> Iterator[Case]:
    """Every wrong operator as an Operator, those that are wrong as maps also as what others write; wrong functions."""
    for mutant in [*MUTANTS, *WRAPPER_MUTANTS]:
        yield Case(mutant.what, "operator", functools.partial(_operator, mutant.wrong))
    for mutant in WRONG_MAPS:
        for form in FORMS:
            if (mutant.what, form) not in NO_FAULT:
                yield Case(mutant.what, form, functools.partial(_operator, mutant.wrong, form=form))
    for name, wrong in {**MEASURED, **REPORTED}.items():
        arguments = {"claim": wrong.claim, "library": wrong.library, "domain": wrong.domain}
        yield Case(name, "function", functools.partial(_function, wrong.function, arguments))
    for name, (function, claim, library) in ACCUSED.items():
        yield Case(name, "function", functools.partial(_function, function, {"claim": claim, "library": library}))


def _operator(operator: Any, slowed: Callable[..., Any], form: str | None = None) -> Any:
    with ExitStack() as stack:
        for method in ("encode", "decode", "round"):
            if hasattr(type(operator), method):
                stack.enter_context(mock.patch.object(type(operator), method, slowed(getattr(type(operator), method))))
        return check(FORMS[form](operator) if form else operator, seed=SEED)


def _function(function: Callable[..., Any], arguments: dict[str, Any], slowed: Callable[..., Any]) -> Any:
    return check(adapt(slowed(function), **arguments), seed=SEED)


def asleep(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, later."""

    @functools.wraps(function)
    def slow(*arguments: Any, **keywords: Any) -> Any:
        time.sleep(SLEEP_S)
        return function(*arguments, **keywords)

    return slow


def judged(index: int, setting: str) -> dict[str, Any]:
    """What the kit says of one case."""
    case = list(cases())[index]
    began, began_here = time.monotonic(), time.process_time()
    report = case.judge(asleep if setting == "asleep" else lambda function: function)
    return {
        "what": case.what,
        "form": case.form,
        "setting": setting,
        "ok": report.ok,
        "accused_by": [v.law for v in report.failures],
        "seconds": round(time.monotonic() - began, 2),
        "processor_s": round(time.process_time() - began_here, 2),
    }


def _busy() -> None:
    while True:
        pass


def main() -> None:
    """Judge what the record does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--every", type=int, default=1, help="judge each so manieth case only")
    options = parser.parse_args()
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {(r["what"], r["form"], r["setting"]) for r in map(json.loads, lines)}
    context = multiprocessing.get_context("spawn")
    for setting in options.settings:
        todo = [i for i, c in enumerate(cases()) if (c.what, c.form, setting) not in done][:: options.every]
        loops = [context.Process(target=_busy, daemon=True) for _ in range(2 * (setting == "loaded"))]
        for loop in loops:
            loop.start()
        try:
            with ProcessPoolExecutor(SETTINGS[setting], context) as pool, options.out.open("a") as out:
                for record in pool.map(functools.partial(judged, setting=setting), todo):
                    out.write(json.dumps({**record, "commit": commit}) + "\n")
                    out.flush()
        finally:
            for loop in loops:
                loop.terminate()


if __name__ == "__main__":
    main()
