"""The global top-k study: the conserving rule keeps all mass, the published one does not, and both train."""

import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.gtopk import GlobalTopKStudy, tree

SMALL = GlobalTopKStudy(crowds=(2, 8), d=500, fraction=0.02, rounds=4, workers=2, steps=10, seeds=(0,))


@pytest.fixture(scope="module")
def records():
    return [{"unit": unit, **SMALL.measure(unit)} for unit in SMALL.units()]


def test_nothing_is_violated_and_every_figure_is_drawn(records):
    rows = SMALL.judge(records)
    assert not [r for r in rows if r.verdict is Verdict.VIOLATED]
    assert sum(r.theorem == "conservation of mass" for r in rows) == 2
    for figure in SMALL.figures(records):
        figure.draw()


def test_published_rule_loses_mass_and_the_conserving_one_none():
    lost = {rule: tree(rule, 8, 500, 0.02, 6)["lost_share"] for rule in ("published", "conserving")}
    assert lost["published"] > 1e-3
    assert lost["conserving"] < 1e-6


def test_lost_mass_would_be_found(records):
    record = next(r for r in records if r["unit"] == "tree:conserving:8")
    assert any(r.verdict is Verdict.VIOLATED for r in SMALL.judge([{**record, "missing": 0.1}]))


def test_tree_costs_two_messages_a_level():
    record = tree("conserving", 8, 500, 0.02, 1)
    assert record["tree_bits"] * 8 == record["gather_bits"] * 6
