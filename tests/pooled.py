"""Parametrised tests whose cases take a millisecond: some of them together are one test of pytest."""

import functools
import inspect

import pytest

POOLS = 4


def pooled(names, cases, *, ids=None, pools=POOLS):
    """Parametrise a test by every ``pools``-th case: a pool names every case of it that fails.

    Arguments as in ``pytest.mark.parametrize``; single cases have no marks.
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    rows = [_row(case, len(names)) for case in cases]
    labels = [_label(case, row, place, ids) for place, (case, row) in enumerate(zip(cases, rows, strict=True))]

    def decorate(test):
        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]

        @functools.wraps(test)
        def run(*, pool, **fixtures):
            failures = []
            for row, label in list(zip(rows, labels, strict=True))[pool::pools]:
                try:
                    test(**dict(zip(names, row, strict=True)), **fixtures)
                except Exception as failure:
                    failure.add_note(f"case {label}")
                    failures.append(failure)
            if failures:
                raise ExceptionGroup(f"{len(failures)} cases fail", failures)

        only = inspect.Parameter.KEYWORD_ONLY
        taken = [parameter.replace(kind=only) for parameter in kept] + [inspect.Parameter("pool", only)]
        del run.__wrapped__
        run.__signature__ = signature.replace(parameters=taken)
        return pytest.mark.parametrize("pool", range(min(pools, len(rows))))(run)

    return decorate


def _row(case, number):
    if isinstance(case, type(pytest.param())):
        return case.values
    return (case,) if number == 1 else tuple(case)


def _label(case, row, place, ids):
    if isinstance(case, type(pytest.param())):
        return case.id
    if callable(ids):
        return "-".join(map(str, map(ids, row)))
    return case if ids is None else list(ids)[place]
