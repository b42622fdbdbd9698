"""The number of local steps to use, with the values around it, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from bounds import Setting
from bounds.tau import Derivation, TauConvex, TauCurved, TauStar
from bounds.theorems import pasgd_convex_sharp, pasgd_runtime, pasgd_smooth_sharp

from ..records import Quantity, Statement, number_text
from .cluster import Cluster


class TauResult(Quantity):
    """The number of local steps to use, as a float, with the values around it.

    Attributes
    ----------
    lo
        Least tau over estimated or assumed constants; tau itself where all are known.
    hi
        Greatest tau over them.
    tau : int
        The best integer by Theorem 2 (equal to the float itself).
    tau_real : float
        Its real minimiser.
    cap : int or None
        The largest tau that the learning rate allows, None if eta L > 1.
    safe : int or None
        tau within that cap: the worst case is covered.
    sharp : int or None
        The best integer within the cap when stragglers count too, so at least as good.
    smooth : int or None
        Of the third-order law, where ``third_derivative`` was given: smooth problems bear that many, kinked ones do
        not; else None.
    rho : float or None
        What was assumed of the curvature: every Hessian >= -rho; None if nothing.
    """

    tau: int
    tau_real: float
    cap: int | None
    safe: int | None
    sharp: int | None
    smooth: int | None
    rho: float | None

    def derivation(self) -> Derivation:
        """Return the proof, by sympy, that tau_real is the only positive minimiser of the bound.

        Raises
        ------
        ValueError
            With rho > 0, where the minimiser has no closed form.
        """
        if self.rho:
            raise ValueError(f"the minimiser for rho > 0 is derived in bounds.tau.price; got rho = {self.rho}")
        return TauStar.derivation() if self.rho is None else TauConvex.derivation()

    def to_dict(self) -> dict[str, Any]:
        """With the values around it."""
        names = ("tau", "tau_real", "safe", "sharp", "smooth", "cap", "rho")
        return super().to_dict() | {name: getattr(self, name) for name in names}


def published_statement(
    cluster: Cluster,
    given: dict[str, str],
    delay_s: float,
    best: TauStar,
    sharp: int | None,
    function: Callable[..., Any],
) -> Statement:
    """Return what is said where nothing is known of the curvature."""
    cap, safe = best.cap, best.capped
    if cap is None:
        advice = f"eta L > 1 is outside Theorem 1: lower eta from {given['eta']} before trusting any tau"
    else:
        waiting = "" if sharp is None or sharp == safe else f", every {number_text(sharp)} if stragglers count too"
        assert safe is not None
        every = "step" if safe == 1 else f"{number_text(safe)} steps"
        advice = (
            f"Average every {every} to be safe in the worst case{waiting}; "
            "on smooth losses more pays: schedule='auto' measures how many while training"
        )
    return Statement(
        quantity="local steps between two averagings that minimise the published error bound",
        unit="step",
        side="tight",
        theorem="tau_star",
        reference="wang2018, Theorem 2, arXiv:1810.08313",
        status="proved",
        about="minimiser of pasgd_runtime, a bound, not of the error itself",
        needs=pasgd_runtime.setting.hypotheses(),
        assumptions=(
            "counting only rounds ended by time_s adds about one round in N to the bound (rd.error_bound), and the "
            "best tau may differ while rounds are few",
            f"one averaging takes D = {delay_s:.6g} s on {cluster.in_words()}; sharp counts its random steps",
            f"eta*L + (eta*L)**2*tau*(tau - 1) <= 1 holds {_up_to(cap, given)}",
        ),
        advice=advice,
        formula=TauStar.latex(),
        at={**given, "cluster": cluster},
        function=function,
    )


def _up_to(cap: int | None, given: dict[str, str]) -> str:
    if cap is None:
        return f"at no tau: eta*L = {float(Fraction(given['eta']) * Fraction(given['L'])):.6g}"
    return f"up to tau = {number_text(cap)}"


def curved_statement(
    plain: Statement, rho: Fraction, tau: int, sharp: int | None, function: Callable[..., Any]
) -> Statement:
    """Return what is said where the curvature is known, from what is said without."""
    bound = pasgd_smooth_sharp if rho else pasgd_convex_sharp
    waiting = "" if sharp is None or sharp == tau else f", every {number_text(sharp)} if stragglers count too"
    every = "step" if tau == 1 else f"{number_text(tau)} steps"
    classed = f"of every F whose Hessians are >= -{float(rho):g}" if rho else "of every convex F"
    return replace(
        plain,
        quantity=f"local steps between two averagings that minimise the bound {bound.name} in seconds",
        theorem="tau_curved" if rho else "tau_convex",
        reference=str(bound.reference),
        about=f"minimiser of {bound.name} in seconds, a bound, not of the error itself",
        needs=Setting(bound.setting.needs | pasgd_runtime.setting.needs, bound.setting.concludes).hypotheses(),
        assumptions=(*plain.assumptions[:-1], "eta*L <= 1; no tau is too long for it"),
        advice=f"Average every {every} to be safe in the worst case {classed}{waiting}",
        formula=TauCurved.latex() if rho else TauConvex.latex(),
        function=function,
    )
