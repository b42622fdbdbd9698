"""What a user pays for importing the package."""

import subprocess
import sys

HEAVY = ("torch", "numba", "clarabel", "cvxpy", "matplotlib")
USE = """
import sys, bounds
for name in bounds.__all__:
    getattr(bounds, name)
bounds.pep.certified_floor(about="gap", x=1, m=4, tau=2)
list(bounds.pep.entries())[0].floor
bounds.tau.tau_star(gap=1, delay_s=1, eta=1, L=1, sigma2=1, time_s=1)
print(*(m for m in {heavy!r} if m in sys.modules))
"""
LAW = """
bounds.runtime.LogNormal(0, 1).expected_max(m=4, tau=3)
print(*(m for m in {heavy!r} if m in sys.modules))
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True).stdout


def test_using_every_public_name_needs_no_heavy_package():
    """Only a random time loads scipy.stats."""
    assert run(USE.format(heavy=(*HEAVY, "scipy.stats"))).split() == []
    assert run((USE + LAW).format(heavy=HEAVY)).split() == []


def test_importing_the_package_is_no_heavier_than_sympy():
    loaded = run("import sys, bounds; print(*{m.partition('.')[0] for m in sys.modules})").split()
    assert not {"scipy", "sympy", "torch", "numba", "flint"} & set(loaded)
