"""The best number of local steps where every Hessian is >= -rho, from convex (rho = 0) to merely smooth (rho = L)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arguments import exact_arguments
from .price import local_step_price


@dataclass(frozen=True)
class TauCurved:
    """The minimiser of ``pasgd_smooth_sharp`` in seconds; no cap couples it with the learning rate.

    Parameters
    ----------
    real : float
        The real minimiser; 0 if averaging is free, infinite without noise or with one worker.
    integer : int or None
        The best integer; None if the real one is infinite.
    """

    real: float
    integer: int | None

    @staticmethod
    def latex() -> str:
        """Return the equation of the minimiser in LaTeX."""
        return (
            r"\frac{2\,\Delta F\,D\,y^2}{\eta T(1-\frac1m)\eta^2(\frac{L+\rho}2)^2\sigma^2} = 1+e^u(u-1),\quad "
            r"u=\tau^*\log(1+y),\quad 1+y=(1+\eta\rho)^2"
        )


def tau_curved(*, gap: Any, delay_s: Any, eta: Any, L: Any, sigma2: Any, time_s: Any, m: Any, rho: Any) -> TauCurved:
    """Return the best tau for 2 gap (Y + D/tau)/(eta T) + price(tau), for eta L <= 1 and Hessians >= -rho.

    Parameters
    ----------
    gap : number
        F(x_1) - inf F; 0 <= gap.
    delay_s : number, seconds
        Time of one averaging, seconds; 0 <= delay_s.
    eta : number
        Learning rate; 0 < eta.
    L : number
        Smoothness constant of F; 0 < L.
    sigma2 : number
        Variance of one worker's mini-batch gradient; 0 <= sigma2.
    time_s : number, seconds
        Wall-clock budget, seconds; 0 < time_s.
    m : number
        Number of workers; 1 <= m, an integer.
    rho : number
        Every Hessian is >= -rho; 0 <= rho <= L, 0 where F is convex (then as ``tau_convex``).

    Raises
    ------
    ValueError
        For arguments outside the ranges, if eta L > 1 or rho > L.
    """
    given = exact_arguments(
        "tau_curved", gap=gap, delay_s=delay_s, eta=eta, L=L, sigma2=sigma2, time_s=time_s, m=m, rho=rho
    )
    names = ("eta", "L", "sigma2", "rho")
    price = local_step_price("tau_curved", m=int(given["m"]), **{name: given[name] for name in names})
    averaging = float(2 * given["gap"] * given["delay_s"] / (given["eta"] * given["time_s"]))
    return TauCurved(price.best_real(averaging), price.best_integer(averaging))
