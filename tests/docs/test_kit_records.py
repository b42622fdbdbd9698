"""The records of the conformance kit keep what its page says."""

from collections import Counter

import kit_records
import pytest
from records import lines_of, rows_of

BOTH = ("lengths", "remainders", "values", "spread bias", "streams", "circumstances")
ALONE = ("feedback", "aggregates", "hooks", "exchanges")
SIX = 6


@pytest.mark.parametrize(
    ("kind", "form"), [*((kind, form) for kind in BOTH for form in ("Operator", "function")), *((k, "") for k in ALONE)]
)
def test_at_least_six_wrong_subjects_of_every_kind_and_form_fail(kind, form):
    rows = [row for row in lines_of(kit_records.KINDS) if (row["kind"], row["form"]) == (kind, form)]

    assert sum(bool(row["failed"]) for row in rows) >= SIX


def test_at_most_one_honest_run_is_accused():
    """n runs at the level 1e-6 each."""
    rows = lines_of(kit_records.HONEST)

    assert sum(bool(row["failures"]) for row in rows) <= 1
    assert max(Counter((row["subject"], row["seed"]) for row in rows).values()) == 1


def test_honest_runs_are_of_one_state_of_the_kit():
    states = {row["kit"] for row in lines_of(kit_records.HONEST)}

    assert len(states) == 1


def test_every_check_keeps_its_limit_in_processor_seconds():
    rows = rows_of(kit_records.SECONDS, "seconds")

    assert {form: sum(row["form"] == form for row in rows) >= 16 for form in kit_records.LIMITS_S} == {
        "codec": True,
        "function": True,
    }
    assert [row for row in rows if row["seconds"] > kit_records.LIMITS_S[row["form"]]] == []
    assert kit_records.kit_over_the_limits().startswith("0 of ")


def test_defects_of_more_than_the_stated_power_fail():
    """38 of 40 are asked for."""
    rows = [row for row in lines_of(kit_records.POWERS) if row["stated"] is not None]

    assert len(rows) >= 40
    assert sum(row["refuted"] for row in rows) >= 0.95 * len(rows)


def test_page_states_every_miss():
    missed = [row for row in lines_of(kit_records.KINDS) if not row["failed"]]

    assert kit_records.kit_misses().count("\n") == max(0, len(missed) - 1)
