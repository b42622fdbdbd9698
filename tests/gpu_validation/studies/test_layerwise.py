"""The layer-wise study: proved inequalities hold on real gradients, and a false one would be found."""

import numpy as np
import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.layerwise import OPERATORS, PRESET, LayerWiseStudy, distortion

SMALL = LayerWiseStudy(at=(0, 3), draws=10, steps=5, seeds=(0,))


@pytest.mark.parametrize("name", OPERATORS)
def test_proved_rows_hold_on_a_gradient(name):
    unit = f"distort:network:3:{name}"
    rows = SMALL.judge([{"unit": unit, **SMALL.measure(unit)}])
    assert not [r for r in rows if r.verdict is Verdict.VIOLATED]
    assert any(r.verdict is Verdict.HOLDS for r in rows) or name == "topk:0.05"


def test_errors_and_bits_are_those_of_the_parts():
    x = np.array([3.0, -1.0, 0.5, 0.5, 10.0, -10.0], np.float32)
    record = distortion(OPERATORS["scaled_sign"], x, (4, 2), draws=3)
    first = np.square(np.abs(x[:4]) - 1.25).sum()
    assert record["nmse"]["layerwise"] == pytest.approx([first / np.square(x).sum()])
    assert record["bits"] == {"layerwise": (4 + 2 + 64) / 6, "entire": (6 + 32) / 6}
    assert record["constants"] == {"layerwise": 0.75, "entire": pytest.approx(5 / 6)}


@pytest.mark.parametrize("name", ["scaled_sign", "terngrad"])
def test_exchanged_scopes_would_be_found(name):
    unit = f"distort:network:3:{name}"
    record = SMALL.measure(unit)
    for field in ("nmse", "constants"):
        record[field] = {"layerwise": record[field]["entire"], "entire": record[field]["layerwise"]}
    assert any(r.verdict is Verdict.VIOLATED for r in SMALL.judge([{"unit": unit, **record}]))


def test_both_scopes_train_and_are_drawn():
    losses = [SMALL.measure(f"train:{scope}:scaled_sign")["loss"][0] for scope in ("layerwise", "entire")]
    assert all(loss < 2.4 for loss in losses)
    assert losses[0] != losses[1]
    unit = "distort:network:0:qsgd:16"
    (figure,) = SMALL.figures([{"unit": unit, **SMALL.measure(unit)}])
    figure.draw()
    assert len(set(PRESET.units())) == len(PRESET.units())
