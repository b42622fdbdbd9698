"""Every result draws itself; the point lies on the curve."""

import numpy as np
import pytest

import ratedist as rd

CLUSTER = rd.Cluster(workers=4, latency_s=0.1, step_s=0.1)
PROBLEM = {"L": 1, "sigma2": 1, "eta": 0.05, "gap": 1, "time_s": 600}


@pytest.mark.parametrize(
    ("make", "along"),
    [
        (lambda: rd.bits_lower_bound(d=1000, omega=1), "omega"),
        (lambda: rd.solve(d=1000, bits=1000, alpha=None), "bits"),
        (lambda: rd.certify("worst_case_bits", d=1000, alpha=0.3), "alpha"),
        (lambda: rd.error_bound(**PROBLEM, tau=4, cluster=CLUSTER), "time_s"),
        (lambda: rd.tau_star(**PROBLEM, cluster=CLUSTER), "gap"),
        (lambda: rd.runtime(rd.Cluster(workers=4, compute="constant"), tau=4), "tau"),
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


def test_rankings_and_curves_draw_themselves():
    plan = rd.plan(d=1000, cluster=CLUSTER, operators=["identity", "qsgd:4", "signsgd"], target=0.1)
    assert len(plan.plot().patches) == 2
    assert rd.measured_curve(["tcdq:omega=1"], rd.sources.Gaussian(), d=1000).plot().lines


def test_an_unknown_argument_is_refused():
    with pytest.raises(ValueError, match="along must be one of"):
        rd.bits_lower_bound(d=1000, omega=1).plot(along="x")
