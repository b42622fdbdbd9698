"""Pools of cases: every case runs once, and each that fails is named."""

import pytest

from tests.pooled import pooled


def parts_of(test):
    (mark,) = test.pytestmark
    return mark.args[1]


def test_every_case_runs_once_and_each_failure_is_named():
    seen = []

    @pooled(("a", "b"), [(k, -k) for k in range(10)], pools=3)
    def check(a, b, extra):
        seen.append((a, b, extra))
        assert a % 4

    failures = []
    for pool in parts_of(check):
        try:
            check(pool=pool, extra="fixture")
        except ExceptionGroup as group:
            failures += [note for failure in group.exceptions for note in failure.__notes__]
    assert sorted(seen) == [(k, -k, "fixture") for k in range(10)]
    assert sorted(failures) == ["case (0, 0)", "case (4, -4)", "case (8, -8)"]


@pooled("value", [pytest.param(1, id="one"), pytest.param(2, id="two")])
@pytest.mark.parametrize("factor", [1, 3])
def test_fixtures_and_other_parameters_are_passed_on(value, factor, tmp_path):
    assert value in (1, 2)
    assert factor in (1, 3)
    assert tmp_path.is_dir()
