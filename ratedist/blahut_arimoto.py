"""The rate-distortion function of a source under mean square error, as an enclosure.

The Blahut-Arimoto iteration runs on a discretised problem, finished by Newton steps (the problem in the weights is
that of a maximum-likelihood mixture, so a step is a non-negative least-squares problem: Wang 2007).  Whatever weights
it ends with, both ends below hold for the source itself.

Setting.  Cells partition the line; a cell i has probability p_i, centroid x_i and spread v_i = E[(X - x_i)^2; cell].
Outputs y_j with weights q_j, slope b > 0 (nats), lambda_i = 1/sum_j q_j exp(-b (x_i - y_j)^2).

Upper end.  Let Y depend on X through its cell only, with the channel ``p(j|i) = q_j lambda_i exp(-b (x_i - y_j)^2).
Then I(X; Y) is that of the cells, and since x_i is the conditional mean, E(X - Y)^2 is that of the centroids plus sum
v_i: an achievable point of the source``.

Lower end.  For any positive function l, R(D) >= E ln l(X) - b D - ln sup_y c(y) nats, c(y) = E[l(X) exp(-b (X - y)^2)]
(Berger 1971, Theorem 4.2.3).  Inside a cell of width h_i with channel mean m_i choose l(x) = lambda_i
exp(2b (x - x_i)(x_i - m_i)): its expected logarithm is ln lambda_i because x_i is the centroid, and
exp(-b (x - y)^2) l(x) <= lambda_i exp(-b (x_i - y)^2 + 2b (x - x_i)(y - m_i)), whose mean over the cell is, by
Hoeffding's lemma, at most lambda_i exp(-b (x_i - y)^2 + b^2 h_i^2 (y - m_i)^2/2).  Cells too wide for that keep a
constant l and exp(-b (distance of y to the cell)^2).  Between two points of a fine grid of spacing g every Gaussian
term is exp(convex) times a factor in [exp(-b g^2/4), 1], so c exceeds its larger neighbour by at most exp(b g^2/4);
outside the grid all terms decrease.
Both discretisation errors are of second order in the widths.  Sums are in float64, covered by ROUNDING.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from bounds import Interval

from .sources.source import Cells, Source, checked_nmse

ROUNDING = 1e-10  # bits; sums of 10^4 positive float64 terms err by less
CELL_WIDTH = 0.03  # over sqrt(D)
OUTPUT_SPACING = 0.6  # over sqrt(D); the aliasing of a Gaussian kernel is then exp(-2 pi^2/.36)
CHECK_SPACING = 0.03  # over sqrt(D), of the grid on which sup c is taken
CHECK_HALVINGS = 4  # from a coarser grid, where c may reach its maximum
BULK = 4.0  # root mean squares; beyond, all spacings grow in proportion to |x|
TAIL_SHARE = 1e-5  # second moment left to the outermost cells
MAX_ENTRIES = 1_000_000  # of the matrix cells x outputs
FLOOR = 1e-10  # weight kept on every output, so that a change of slope can bring it back
RIDGE = 1e-13  # relative; neighbouring outputs are nearly dependent
SLOPE_TOLERANCE = 3e-6  # relative, of D reached; costs 1.4 times that in bits
END_SHARE = 1e-4  # most that one of the two unbounded cells may add to c
ITERATIONS_A_ROUND = 15
TAIL_ROUNDS = 8
OVER_RELAXATION = 1.5
TAIL_FROM = 2.5  # root mean squares
NEGLIGIBLE = 45.0  # nats
CLIP = 600.0  # nats; exponentials beyond are as good as infinite
BLOCK = 128  # check points worked on at a time


@dataclass(frozen=True)
class _State:
    cells: Cells
    outputs: np.ndarray
    weights: np.ndarray
    slope: float
    likelihood: np.ndarray  # exp(-b (x_i - y_j)^2) over its largest entry of the row
    log_shift: np.ndarray  # minus the logarithm of that entry

    @property
    def mixture(self) -> np.ndarray:
        return self.likelihood @ self.weights


def rate_distortion(
    source: Source, nmse: float, *, cell_width: float = CELL_WIDTH, newton_steps: int = 40, gap_bits: float = 1e-5
) -> Interval:
    """Return an interval of bits per coordinate that contains R(D) at D = nmse E X^2.

    Parameters
    ----------
    source : Source
        Any law of ``ratedist.sources``.  0 < nmse < 1.
    nmse : float
        Mean square error over the mean square of the input, > 0.
    cell_width : float, optional
        Of the discretisation, over sqrt(D); the interval shrinks with its square.
    newton_steps : int, optional
        The iteration stops after so many steps; the interval is then wider, not wrong.
    gap_bits : float, bits, optional
        The iteration stops when the discrete problem is solved so far.

    Raises
    ------
    ValueError
        For nmse outside (0, 1), or so small that the discretisation gets too large.
    """
    distortion = checked_nmse(nmse) * source.second_moment
    state = _start(source, distortion, cell_width)
    state, points = _solve(state, distortion, newton_steps, gap_bits)
    points.append((source.second_moment, 0.0))  # sending nothing
    above, below = ([point for point in points if (point[0] > distortion) is side] for side in (True, False))
    if not below:
        raise ValueError(f"no channel with cells of {cell_width} sqrt(D) reaches nmse = {nmse}; reduce cell_width")
    # R is convex: any chord between achievable points is achievable
    upper = min(v + (w - v) * (distortion - x) / (y - x) for x, v in below for y, w in above)
    lower = max(_lower_bits(state, distortion), source.shannon_lower_bound(nmse))
    return Interval(max(0.0, min(lower, upper) - ROUNDING), upper + ROUNDING)


def _solve(
    state: _State, distortion: float, newton_steps: int, gap_bits: float
) -> tuple[_State, list[tuple[float, float]]]:
    """Solve for the weights and the slope; every achievable point met on the way."""
    points = []
    low, high = 0.0, math.inf  # slopes known to be too small and too large
    for _ in range(newton_steps):
        state = _newton(_iterate(state, ITERATIONS_A_ROUND))
        points.append(_point(state))
        off = points[-1][0] / distortion - 1
        if abs(off) <= SLOPE_TOLERANCE:
            if _gap_bits(state) <= gap_bits:
                break
            continue
        low, high = (max(low, state.slope), high) if off > 0 else (low, min(high, state.slope))
        if high < low * (1 + abs(off) / 10):  # an end was set before the weights had settled
            low, high = 0.0, math.inf
        guess = state.slope * min(max(1 + off, 0.7), 1.4)  # D is about 1/(2 slope) where nothing is cut off
        state = _with_slope(state, guess if low < guess < high else math.sqrt(max(low, high / 4) * min(high, 4 * low)))
    points.append(_point(_with_slope(state, state.slope * (1 + 2 * SLOPE_TOLERANCE))))
    return state, points


def _newton(state: _State) -> _State:
    """Minimise the second-order model of -sum p ln(mixture) over the simplex, then step back until it helps."""
    from scipy.optimize import nnls

    p, mixture = state.cells.probability, state.mixture
    model = np.column_stack((state.likelihood / mixture[:, None], np.full(p.size, 2.0))) * np.sqrt(p)[:, None]
    gram = model.T @ model
    factor = np.linalg.cholesky(gram + RIDGE * np.trace(gram) * np.eye(len(gram))).T
    stiff = 1e3 * abs(factor[0, 0])  # holds the sum of the weights at 1
    matrix = np.vstack((factor[:, :-1], np.full(state.weights.size, stiff)))
    target = np.append(factor[:, -1], stiff)
    target_weights = nnls(matrix, target, maxiter=30 * state.weights.size)[0]
    direction = target_weights / target_weights.sum() - state.weights
    start = float(p @ np.log(mixture))
    size = 1.0
    while size > 1e-6:
        weights = state.weights + size * direction
        reached = state.likelihood @ weights
        if reached.min() > 0 and float(p @ np.log(reached)) >= start:
            return replace(state, weights=(1 - FLOOR) * weights + FLOOR / weights.size)
        size /= 2
    return _iterate(state, ITERATIONS_A_ROUND)


def _start(source: Source, distortion: float, cell_width: float) -> _State:
    root = math.sqrt(distortion)
    bulk = min(source.reach(1e-3), BULK * math.sqrt(source.second_moment))
    reach = max(bulk, source.reach(TAIL_SHARE))
    outputs = _grid(bulk, reach, OUTPUT_SPACING * root)
    width = cell_width * root
    while len(cells_edges := _grid(bulk, reach, width)) * len(outputs) > MAX_ENTRIES:
        width *= 1.2
        if width > root:
            raise ValueError(
                f"the distortion {distortion:g} needs more than {MAX_ENTRIES} entries; "
                "allow more distortion, or bound it with shannon_lower_bound and the Gaussian rate"
            )
    cells = source.cells(cells_edges)
    weights = (np.exp(-outputs * outputs / (2 * source.second_moment)) + 1e-6) * np.gradient(outputs)
    empty = np.empty((0, 0))
    state = _State(cells, outputs, weights / weights.sum(), 1 / (2 * distortion), empty, empty)
    return _with_slope(state, state.slope)


def _grid(bulk: float, reach: float, step: float) -> np.ndarray:
    """Return symmetric points: spacing ``step`` up to bulk, then growing in proportion, up to reach."""
    count = math.ceil(bulk / step)
    inner = step * np.arange(count + 1)
    ratio = 1 + step / inner[-1]
    outer = inner[-1] * ratio ** np.arange(1, 1 + max(0, math.ceil(math.log(reach / inner[-1]) / math.log(ratio))))
    half = np.concatenate((inner, outer))
    return np.concatenate((-half[:0:-1], half))


def _with_slope(state: _State, slope: float) -> _State:
    exponent = -slope * np.subtract.outer(state.cells.centroid, state.outputs) ** 2
    shift = exponent.max(axis=1)
    likelihood = np.exp(exponent - shift[:, None])
    return _State(state.cells, state.outputs, state.weights, slope, likelihood, -shift)


def _iterate(state: _State, count: int) -> _State:
    weights, p, likelihood = state.weights, state.cells.probability, state.likelihood
    for _ in range(count):
        weights = weights * ((p / (likelihood @ weights)) @ likelihood)
        weights = weights / weights.sum()
    return _State(state.cells, state.outputs, weights, state.slope, likelihood, state.log_shift)


def _gap_bits(state: _State) -> float:
    """Return how far the discrete problem is from solved: log2 of the largest c over the outputs."""
    return math.log2(((state.cells.probability / state.mixture) @ state.likelihood).max())


def _point(state: _State) -> tuple[float, float]:
    """Return (distortion, bits) of the channel, exact for the source."""
    p, mixture = state.cells.probability, state.mixture
    ratio = (p / mixture) @ state.likelihood
    joint = (p / mixture)[:, None] * state.likelihood * state.weights
    between = float(np.sum(joint * np.subtract.outer(state.cells.centroid, state.outputs) ** 2))
    marginal = state.weights * ratio
    used = marginal > 0
    nats = np.sum(p * (state.log_shift - np.log(mixture))) - state.slope * between
    nats -= np.sum(marginal[used] * np.log(ratio[used]))
    return between + float(state.cells.spread.sum()), float(nats) / math.log(2)


def _lower_bits(state: _State, distortion: float) -> float:
    cells, b = state.cells, state.slope
    width = cells.upper - cells.lower
    narrow = b * np.minimum(width, 1e150) ** 2 < 0.5
    log_l = state.log_shift - np.log(state.mixture)
    mean = (state.likelihood @ (state.weights * state.outputs)) / state.mixture
    inner = np.clip(0.0, cells.lower, cells.upper)[~narrow]  # the end of a wide cell that is nearer to 0
    exponent = -b * np.subtract.outer(inner, state.outputs) ** 2
    top = exponent.max(axis=1, initial=-np.inf)
    log_l[~narrow] = -top - np.log(np.exp(exponent - top[:, None]) @ state.weights)
    # lower l by what the bounds below add to c, so that coarse cells of little probability do not decide sup c
    finite = np.isfinite(width)
    log_l += np.where(narrow, 0.5 * np.log1p(-b * np.where(narrow, width, 0.0) ** 2 / 2), 0.0)
    log_l -= np.where(~narrow & finite, np.log1p(np.where(finite, width, 0.0) * math.sqrt(b / math.pi)), 0.0)
    log_l = np.where(finite, log_l, np.minimum(log_l, math.log(END_SHARE) - np.log(cells.probability)))
    test = _Test(state.slope, cells, log_l, mean, narrow)
    tail = np.abs(cells.centroid) > TAIL_FROM * math.sqrt(cells.second_moment)
    reach = np.array([-1.0, 0.0, 1.0]) / math.sqrt(2 * b)
    for _ in range(TAIL_ROUNDS):  # where outputs and cells are sparse, l is too large between them
        around = (cells.centroid[tail, None] + reach).ravel()
        log_l = log_l.copy()
        log_l[tail] -= OVER_RELAXATION * np.maximum(0.0, np.log(test.values(around)).reshape(-1, 3).max(axis=1))
        test = replace(test, log_l=log_l)
    objective = float(np.sum(cells.probability * log_l)) - b * distortion
    return (objective - test.log_sup()) / math.log(2)


@dataclass(frozen=True)
class _Test:
    """The function c(y) of the lower end, bounded from above."""

    slope: float
    cells: Cells
    log_l: np.ndarray
    mean: np.ndarray
    narrow: np.ndarray

    def values(self, y: np.ndarray) -> np.ndarray:
        """Return upper bounds on c at the points y."""
        cells, b, wide = self.cells, self.slope, ~self.narrow
        log_mass = np.log(cells.probability) + self.log_l
        width = np.where(self.narrow, cells.upper - cells.lower, 0.0)
        bend = b * b * width * width / 2
        # a cell farther than r from a block of points adds at most its mass times exp(-b r^2 + bend (r + |x-m|)^2)
        r = math.sqrt(NEGLIGIBLE / b)
        offset = np.abs(cells.centroid - self.mean)
        exponent = log_mass - b * r * r + bend * (r + offset) ** 2
        always = bend * (r + offset) > 0.5 * b * r
        rest = float(np.exp(np.minimum(exponent[~always], CLIP)).sum())
        left = np.where(wide, cells.lower, cells.centroid)
        right = np.where(wide, cells.upper, cells.centroid)
        parts = [np.empty(0)]
        for start in range(0, y.size, BLOCK):
            points = y[start : start + BLOCK, None]
            i = np.flatnonzero(always | ((left < points.max() + r) & (right > points.min() - r)))
            exponent = -b * (cells.centroid[i] - points) ** 2 + bend[i] * (points - self.mean[i]) ** 2
            gap = np.maximum(np.maximum(cells.lower[i] - points, points - cells.upper[i]), 0.0)
            exponent = np.where(wide[i], -b * gap**2, exponent)
            parts.append(np.exp(np.minimum(log_mass[i] + exponent, CLIP)).sum(axis=1) + rest)
        return np.concatenate(parts)

    def log_sup(self) -> float:
        """Return ln of an upper bound on c over all real y."""
        cells, b = self.cells, self.slope
        ends = np.concatenate((cells.centroid, cells.lower, cells.upper, self.mean))
        ends = ends[np.isfinite(ends)]
        fine = CHECK_SPACING / math.sqrt(2 * b)
        spacing = fine * 2**CHECK_HALVINGS
        left = ends.min() + spacing * np.arange(math.ceil((ends.max() - ends.min()) / spacing))
        edges = self.values(np.append(left, left[-1] + spacing))
        low, high = edges[:-1], edges[1:]
        largest = float(edges.max())
        while spacing > 1.5 * fine:
            # an interval that cannot beat the largest value already seen needs no finer look
            open_ = np.maximum(low, high) * math.exp(b * spacing * spacing / 4) > largest
            left, low, high, spacing = left[open_], low[open_], high[open_], spacing / 2
            middle = self.values(left + spacing)
            left = np.concatenate((left, left + spacing))
            low, high = np.concatenate((low, middle)), np.concatenate((middle, high))
            largest = max(largest, float(middle.max(initial=0.0)))
        top = float(np.maximum(low, high).max(initial=0.0)) * math.exp(b * spacing * spacing / 4)
        bound = math.log(max(largest, top))
        return bound if bound < CLIP - 1 else math.inf  # then clipped values prove nothing
