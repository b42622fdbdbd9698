"""How often a random spherical code misses a Gaussian vector: E (1 - p(Z))^M <= E e^(-M p(Z)), M = floor(2^bits).

Codewords are uniform on the sphere of radius r sqrt(d).  A source vector of squared norm z d, Z = chi^2_d/d, lies
within sqrt(D d) of a codeword whose cosine to it is at least c = (z + r^2 - D)/(2 r sqrt(z)); that has probability
P(1 - c^2, d) for 0 < c < 1, none for c >= 1 and at least 1/2 (used here) for c <= 0.

The kernel is an upper bound.  With s = sqrt(z) = r + sqrt(D) y a hit is possible for -1 < y < 1 only; outside, the miss
has the probability of a chi-square tail.  Inside, 1 - c^2 = D (1 - y^2) ((s + r)^2 - D)/(4 r^2 s^2) does not cancel, p
rises up to s^2 = r^2 - D and falls from there, so that on a cell between two points of y its ends bound the integrand.
Cells begin at the points where the density or M p passes given levels, and are halved until Gauss and Kronrod agree.
To their sum the differences are added, at most as much as the bound by the ends allows, and the rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..enclosure import NotCertifiable
from .cap_probability import NegLog2Cap
from .function import SpecialFunction

WHOLE_BITS = 53  # from here on a fraction of a codeword is below rounding
LEVELS = (-50.0, -30.0, -10.0, -4.0, -2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)  # of log2(M p) at which cells begin
DEVIATIONS = (0.0, 1.0, 2.0, 4.0, 6.0, 9.0, 13.0, 20.0, 30.0, 40.0)  # of s from 1, in standard deviations, likewise
HALVINGS, BISECTIONS = 40, 24
MOST_CELLS = 300  # beyond it rounding, not the integrand, keeps Gauss and Kronrod apart: radii below 1e-7
AGREED = 1e-11  # relative to the sum, or absolute below SMALL: where Gauss and Kronrod count as equal
SMALL = 1e-280
ROUNDING = 1e-11  # relative, of the densities and of the tails
STIRLING_FROM = 1e4  # of d/2: from here ln Gamma would cancel
# Nodes and weights of Kronrod's 15 points, of which every other one is one of Gauss's 7.
NODES = np.array([
    *(0.991455371120812639206854697526329, 0.949107912342758524526189684047851, 0.864864423359769072789712788640926),
    *(0.741531185599394439863864773280788, 0.586087235467691130294144691693013, 0.405845151377397166906606412076961),
    *(0.207784955007898467600689403773245, 0.0),
])  # fmt: skip
KRONROD = np.array([
    *(0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518),
    *(0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014),
    *(0.204432940075298892414161999234649, 0.209482141084727828012999174891714),
])  # fmt: skip
GAUSS = np.array([
    *(0.0, 0.129484966168869693270611432679082, 0.0, 0.279705391489276667901467771423780),
    *(0.0, 0.381830050505118944950369775488975, 0.0, 0.417959183673469387755102040816327),
])  # fmt: skip


def _both_sides(values: np.ndarray, sign: float) -> np.ndarray:
    return np.concatenate([sign * values, values[-2::-1]])


NODES, KRONROD, GAUSS = _both_sides(NODES, -1.0), _both_sides(KRONROD, 1.0), _both_sides(GAUSS, 1.0)


class RandomCodeMiss(SpecialFunction):
    """Upper bound on the probability of a miss, as a function of (bits, d, nmse, radius)."""

    latex_template = r"\varepsilon_{{\mathrm{{rc}}}}\left({0}, {1}, {2}, {3}\right)"

    @staticmethod
    def kernel(bits: Any, d: Any, nmse: Any, radius: Any) -> Any:
        """Compute an upper bound of E e^(-M p), d >= 2, larger by a relative 1e-9 at most (1e-6 at d = 1e12)."""
        return np.vectorize(_miss, otypes=[float])(bits, d, nmse, radius)

    @staticmethod
    def ball(*args: Any) -> Any:
        """Not available: the inner probability would be an integral inside an integral."""
        raise NotCertifiable("the probability of a random code's miss is evaluated in float64 only")


def _miss(bits: float, d: float, nmse: float, radius: float) -> float:
    from scipy.special import gammainc, gammaincc

    code = _Code(float(bits), float(d), float(nmse), float(radius))
    half = code.d / 2
    low, high = max(radius - code.reach, 0.0), radius + code.reach
    outside = float(gammainc(half, half * low**2) + gammaincc(half, half * high**2))
    rounding = ROUNDING + 1e-14 * math.sqrt(code.d)
    return min(1.0, (outside + code.inside()) * (1 + rounding))


@dataclass(frozen=True)
class _Code:
    """A random code, with y = (s - r)/sqrt(D) in place of s."""

    bits: float
    d: float
    nmse: float
    radius: float

    @property
    def reach(self) -> float:
        return math.sqrt(self.nmse)

    @property
    def lowest(self) -> float:
        """Least y at which a hit is possible (s >= 0)."""
        return max(-1.0, -self.radius / self.reach)

    def log2_hits(self, y: np.ndarray) -> np.ndarray:
        """Return log2(M p), rounded down."""
        s = self.radius + self.reach * y
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine = (s * s + self.radius**2 - self.nmse) / (2 * self.radius * s)
            share = self.nmse * (1 - y) * (1 + y) * ((s + self.radius) ** 2 - self.nmse) / (2 * self.radius * s) ** 2
        is_cap = (cosine > 0) & (share > 1e-300) & np.isfinite(cosine)
        share, square = np.where(is_cap, share, 0.5), np.where(is_cap, cosine**2, 0.5)
        square = np.clip(square, 1e-16, 1.0)  # near s = 0 rounding parts the two: the smaller one gives the other
        small = share <= 0.5
        share, square = np.where(small, share, 1 - square), np.where(small, 1 - share, square)
        needed = np.where(is_cap, NegLog2Cap.kernel(share, square, np.float64(self.d)), 1.0)
        codewords = math.log2(math.floor(2.0**self.bits)) if self.bits < WHOLE_BITS else self.bits
        down = 4e-16 * (codewords + needed + self.d)
        return np.where(is_cap | ~(cosine > 0), codewords - needed - down, -np.inf)

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithm of the density of y."""
        from scipy.special import gammaln

        s, half = self.radius + self.reach * y, self.d / 2
        u = self.radius**2 - 1 + self.reach * y * (2 * self.radius + self.reach * y)  # z - 1
        if half < STIRLING_FROM:
            level = half * math.log(half) - half - float(gammaln(half))
        else:
            level = math.log(half / (2 * math.pi)) / 2 - 1 / (12 * half)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = s * s
            fall = np.where(np.abs(u) < 1e-2, _log1p_less(np.clip(u, -0.02, 0.02)), np.log(z) - u)
            log = level + half * fall - np.log(z) + np.log(2 * s * self.reach)
        return np.where(s > 0, log, -np.inf)

    def integrand(self, y: np.ndarray) -> np.ndarray:
        return np.exp(self.log_density(y) - np.exp2(np.minimum(self.log2_hits(y), 60.0)))

    def cells(self) -> np.ndarray:
        """Return the ends of the first cells."""
        lowest = self.lowest
        top_s = math.sqrt(max(self.radius**2 - self.nmse, 0.0))
        flat_s = math.sqrt(max(self.nmse - self.radius**2, 0.0))  # p = 1/2 up to here
        top = min(max((max(top_s, flat_s) - self.radius) / self.reach, lowest), 1.0)
        spread = np.array(DEVIATIONS) / math.sqrt(2 * self.d)
        points = [np.array([lowest, top, 1.0]), (1 + np.concatenate([-spread, spread]) - self.radius) / self.reach]
        levels = np.array(LEVELS)
        near, far = np.full((2, levels.size), top), np.array([[lowest], [1.0]]) + np.zeros(levels.size)
        for _ in range(BISECTIONS):
            middle = (near + far) / 2
            above = self.log2_hits(middle) > levels
            near, far = np.where(above, middle, near), np.where(above, far, middle)
        points.append(near.ravel())
        inside = np.unique(np.concatenate(points))
        return inside[(inside >= lowest) & (inside <= 1.0)]

    def inside(self) -> float:
        """Return an upper bound of the integral of the density times e^(-M p) where a hit is possible."""
        ends = self.cells()
        low, high = ends[:-1], ends[1:]
        done = left = 0.0
        for _ in range(HALVINGS):
            middle, half = (low + high) / 2, (high - low) / 2
            values = self.integrand(middle[:, None] + half[:, None] * NODES)
            sums, error = half * (values @ KRONROD), np.abs(half * (values @ (KRONROD - GAUSS)))
            total = done + float(sums.sum())
            open_ = error > np.maximum(AGREED * np.maximum(total, SMALL) / max(len(low), 16), AGREED * sums)
            open_ &= half > 1e-15
            done += float((sums + error)[~open_].sum())
            if not open_.any():
                return done
            left = float(self._by_ends(low[open_], high[open_]).sum())
            if open_.sum() > MOST_CELLS:
                break
            low, high = (np.concatenate([a[open_], b[open_]]) for a, b in ((low, middle), (middle, high)))
        return done + left

    def _by_ends(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return upper bounds of the integrals over cells with monotone p: their mass at the end of the smaller p."""
        from scipy.special import gammainc, gammaincc

        half = self.d / 2
        a, b = ((self.radius + self.reach * y) ** 2 * half for y in (low, high))
        below, above = gammainc(half, b) - gammainc(half, a), gammaincc(half, a) - gammaincc(half, b)
        mass = np.maximum(np.where(b < half, below, above), 0.0) * (1 + 1e-9) + 1e-300
        hits = np.minimum(self.log2_hits(low), self.log2_hits(high))
        return mass * np.exp(-np.exp2(np.minimum(hits, 60.0)))


def _log1p_less(u: np.ndarray) -> np.ndarray:
    """Return ln(1 + u) - u for |u| <= 0.02 by its series."""
    total = np.zeros_like(u)
    for n in range(11, 1, -1):
        total = total * u + (-1) ** (n + 1) / n
    return total * u * u
