"""Exact quadratics, and the pilots that would be made on them."""

import numpy as np

import ratedist as rd
from bounds.dynamics import Quadratic, two_shot
from ratedist.pilots.progress import LocalPath

ETA = 0.2
EVERY = tuple(range(1, 17))
SPECTRA = {
    "one": np.array([1.0]),
    "logarithmic": np.logspace(-2, 0, 10),
    "even": np.linspace(0.1, 1, 7),
    "two levels": np.array([0.01] * 5 + [1.0] * 2),
}


def problem(name, noise=0.3):
    """Noise that lies otherwise than the gradient."""
    values = SPECTRA[name]
    return Quadratic(values, np.linspace(1, 2, values.size), noise * np.linspace(2, 0.5, values.size))


def path(quadratic, eta=ETA, taus=EVERY):
    """What a pilot finds on average, twice."""
    steps = np.array(taus)[:, None]
    x, g2 = eta * quadratic.eigenvalues, (quadratic.eigenvalues * quadratic.start) ** 2
    change = (1 - (1 - x) ** steps) / quadratic.eigenvalues
    spread = eta**2 * quadratic.noise * (1 - (1 - x) ** (2 * steps)) / (1 - (1 - x) ** 2)
    fall, bend = change @ g2, (change**2 * g2 + spread) @ quadratic.eigenvalues
    drop = (1 - (1 - x) ** steps) @ g2
    rows = [np.array([row, row]) for row in (fall, bend, drop)]
    return LocalPath(tuple(taus), *rows, np.full(2, g2.sum()))


def loss(quadratic, **run):
    """Exact expected loss, coordinate by coordinate, by the library's recursion."""
    each = zip(quadratic.eigenvalues, quadratic.start, quadratic.noise, strict=True)
    return sum(
        float(two_shot.squared_gradient(Quadratic([value], [start], [noise]), **run)) / (2 * value)
        for value, start, noise in each
    )


def exact_share(quadratic, *, tau, m, omega, omega2=0.0, eta=ETA):
    """Progress of a round over that of as many synchronous steps."""
    run = {"eta": eta, "m": m}
    compressed = loss(quadratic, **run, tau=tau, omega1=omega, omega2=omega2, rounds=1)
    synchronous = loss(quadratic, **run, tau=1, omega1=0.0, omega2=0.0, rounds=tau)
    return (quadratic.gap - compressed) / (quadratic.gap - synchronous)


def measured(quadratic, moments, rng, taus=(1, 2, 4, 8)):
    """One pilot of so many moments, all at the start."""
    shape = (moments, quadratic.start.size)

    def draw():
        return rng.standard_normal(shape) * np.sqrt(quadratic.noise)

    g = quadratic.eigenvalues * quadratic.start
    first, second, x = g + draw(), g + draw(), np.tile(quadratic.start, (moments, 1))
    falls, bends, drops = [], [], []
    for step in range(1, taus[-1] + 1):
        x = x - ETA * (quadratic.eigenvalues * x + draw())
        if step in taus:
            change = quadratic.start - x
            turn = quadratic.eigenvalues * change
            falls.append((first * change).sum(1))
            bends.append((turn * change).sum(1))
            drops.append((turn * first).sum(1))
    gradient2 = 2 * (((first + second) / 2) ** 2).sum(1) - (first**2).sum(1)
    return LocalPath(taus, *(np.array(rows).T for rows in (falls, bends, drops)), gradient2)


def pilot_of(local, trials, d=10**6):
    """The pilot of a worker who has measured so much along its path, with noise of energy 2 in a batch's gradient."""
    energies = np.full(local.gradient2.size, float(local.gradient2[0]) + 2.0)
    return rd.Pilot(
        d=d,
        ranks=1,
        device="cpu",
        threads=1,
        step_s=((0.4, 0.5, 0.6),),
        losses=(1.0,),
        small_norms2=tuple(map(float, energies)),
        large_norms2=tuple(map(float, (energies + local.gradient2) / 2)),
        taus=local.taus,
        survival=tuple(map(tuple, 1 - local.drops / energies[:, None])),
        secants=((1.0,) * len(local.taus),) * len(local.falls),
        operators=tuple(trials),
        links=(),
        memory_bytes=1,
        falls=tuple(map(tuple, local.falls)),
        bends=tuple(map(tuple, local.bends)),
    )
