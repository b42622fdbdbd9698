"""Operators of one family have one colour, and legends keep their size on paper."""

import matplotlib.pyplot as plt
import pytest

from gpu_validation.judging.plotting import FAMILIES, LEGEND_PT, PALETTE, WIDTH_IN, canvas, colour, family, legend_below
from operators import all_operators, specification

A4_TEXT_IN = 6.7


def test_every_operator_has_a_family_and_every_family_a_colour():
    named = [name for names in FAMILIES.values() for name in names]
    assert len(named) == len(set(named))
    assert set(all_operators()) <= set(named)
    assert len({PALETTE[i] for i in range(len(FAMILIES))}) == len(FAMILIES)


@pytest.mark.parametrize("name", ["qsgd:levels=16", "QSGD(16)", "qsgd dense", "qsgd_entropy", "qsgd"])
def test_all_ways_to_write_an_operator_have_the_colour_of_its_family(name):
    assert family(name) == "levels"
    assert colour(name) == colour("terngrad") != colour("topk:0.01")


def test_a_specification_belongs_to_the_family_of_its_operator():
    for name, kind in all_operators().items():
        assert family(specification(kind.examples()[0])) == family(name)


def test_a_legend_has_every_label_once_and_eight_points_in_print():
    figure, axes = canvas(1, 2, height=2)
    for ax in axes.flat:
        ax.plot([0, 1], [0, 1], label="same")
    legend_below(figure, *axes.flat)
    (text,) = figure.legends[0].get_texts()
    assert (text.get_text(), text.get_size()) == ("same", LEGEND_PT)
    assert LEGEND_PT * A4_TEXT_IN / WIDTH_IN >= 8
    plt.close(figure)
