"""Every result draws itself; the point lies on the curve."""

import pickle

import numpy as np
import pytest

import ratedist as rd
from ratedist.drawing import PALETTE, colour, plot_comparison, plot_curve, plot_ranking

CLUSTER = rd.Cluster(workers=4, latency_s=0.1, step_s=0.1)
PROBLEM = {"L": 1, "sigma2": 1, "eta": 0.05, "gap": 1, "time_s": 600}


@pytest.mark.parametrize(
    ("make", "along"),
    [
        (lambda: rd.bits_lower_bound(d=1000, omega=1), "omega"),
        (lambda: rd.solve(d=1000, bits=1000, alpha=None), "bits"),
        (lambda: rd.certify("worst_case_bits", d=1000, alpha=0.3), "alpha"),
        (lambda: rd.error_bound(**PROBLEM, tau=4, cluster=CLUSTER, bits=0), "time_s"),
        (lambda: rd.tau_star(**PROBLEM, cluster=CLUSTER, bits=0), "gap"),
        (lambda: rd.runtime(rd.Cluster(workers=4, compute="constant"), tau=4, bits=0), "tau"),
    ],
)
def test_the_point_lies_on_the_curve(make, along):
    result = make()
    ax = result.plot(along=along)
    (grid, values), (x, y) = (line.get_data() for line in ax.lines)
    assert y[0] == float(result)
    near = np.interp(np.log(x[0]), np.log(grid), values)
    assert near == pytest.approx(y[0], rel=0.05)
    assert ax.get_xlabel() == along


X = np.random.default_rng(0).standard_normal(1000)


@pytest.mark.parametrize("operator", ["tcdq:omega=1", "qsgd:4", "topk:0.01"])
def test_a_gap_is_drawn_between_the_operator_and_its_limit(operator):
    found = rd.gap(operator, X)
    limit, gap, point = found.plot().lines
    (nmse,), (bits,) = point.get_data()
    assert (nmse, bits) == (found.statement.at["nmse"], found.statement.at["bits"])
    assert np.ptp(gap.get_ydata()) == pytest.approx(abs(found))
    assert np.interp(np.log(nmse), np.log(limit.get_xdata()), limit.get_ydata()) == pytest.approx(
        bits - found, abs=0.01
    )


def test_an_array_is_drawn_along_the_argument_that_varies():
    found = rd.bits_lower_bound(d=1000, omega=[3, 1, 2])
    ax = found.plot()
    (line,) = ax.lines
    assert ax.get_xlabel() == "omega"
    assert line.get_xdata().tolist() == [1, 2, 3]
    assert line.get_ydata().tolist() == [found.values[i] for i in (1, 2, 0)]
    with pytest.raises(ValueError, match=r"got d \(2, 1\), omega \(3,\): index the result first"):
        rd.bits_lower_bound(d=[[10], [20]], omega=[1, 2, 3]).plot()
    with pytest.raises(ValueError, match="along must be one of omega; got along = 'd'"):
        found.plot(along="d")


def test_rankings_and_curves_draw_themselves():
    plan = rd.plan(d=1000, cluster=CLUSTER, operators=["identity", "qsgd:4", "signsgd"], target=0.1)
    assert len(plan.plot().patches) == 2
    assert rd.measured_curve(["tcdq:omega=1"], rd.sources.Gaussian(), d=1000).plot().lines


def test_an_unknown_argument_is_refused():
    with pytest.raises(ValueError, match="along must be one of"):
        rd.bits_lower_bound(d=1000, omega=1).plot(along="x")


def test_the_curve_is_that_of_the_exchange_asked_for():
    cluster = rd.Cluster(workers=4, bandwidth_bit_per_s=1e6, latency_s=0.1, compute="constant")
    gathered = rd.runtime(cluster, tau=4, bits=1e6, exchange="gather")
    (grid, values), (x, y) = (line.get_data() for line in gathered.plot(along="bits").lines)
    assert np.interp(np.log(x[0]), np.log(grid), values) == pytest.approx(y[0], rel=0.05)


def test_a_quantity_keeps_its_function_in_a_pickle():
    for made in (rd.bits_lower_bound(d=1000, omega=1), rd.solve(d=1000, bits=1000, alpha=None)):
        read = pickle.loads(pickle.dumps(made))
        assert read.statement.function(**{n: float(v) for n, v in read.statement.at.items()}) == pytest.approx(
            float(made)
        )
        assert "function" not in made.to_dict()


def test_names_with_signs_of_formulas_are_drawn_as_they_are():
    name = "_a$b=c\nd$"
    ax = plot_ranking({name: (1.0, 1.0, 1.0)}, unit="s", title=name, ax=None)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] == [r" _a\$b=c d\$"] == [ax.get_title()]
    measured = plot_curve([(name, 1.0, 0.5, 0.5)], name, None)
    measured.figure.canvas.draw()
    assert measured.get_legend().get_texts()[0].get_text() == r" _a\$b=c d\$"


def test_the_gap_of_a_function_with_a_strange_name_is_drawn():
    found = rd.gap(rd.own(lambda x: x.sign(), bits=8, name="a$b=c$d"), X)
    ax = found.plot()
    ax.figure.canvas.draw()
    assert r"a\$b=c\$d" in ax.get_title()


def curves_of(*names):
    """Colour and mark by name, of curves without the limits."""
    points = [(name, bits, 4.0**-bits, False) for name in names for bits in (1.0, 2.0)]
    lines = [line for line in plot_comparison(points, "title", None).lines if line.get_label() in names]
    return {line.get_label(): (line.get_color(), line.get_marker()) for line in lines}


def test_a_family_of_compressors_has_one_colour_whatever_is_beside_it():
    first, second = curves_of("tcdq", "eden", "qsgd"), curves_of("topk", "qsgd", "terngrad", "eden")

    assert {name: first[name][0] for name in first} == {name: colour(name) for name in first}
    assert first["qsgd"] == second["qsgd"]
    assert first["eden"] == second["eden"]
    assert len({drawn[0] for drawn in first.values()} & {*PALETTE}) == 3


def test_members_of_one_family_have_different_marks():
    drawn = curves_of("qsgd", "terngrad")

    assert drawn["qsgd"][0] == drawn["terngrad"][0]
    assert drawn["qsgd"][1] != drawn["terngrad"][1]
