"""Every merge rule as a training script would write it, many runs side by side: the oracle of the exact models."""

import numpy as np


class Script:
    """m workers on quadratics; arrays of shape (runs, m, d)."""

    def __init__(self, workers, *, eta, outer, runs, seed):
        self.workers, self.eta, self.outer, self.random = workers, eta, outer, np.random.default_rng(seed)
        self.theta = np.tile(workers.start, (runs, 1))
        self.models = np.repeat(self.theta[:, None], workers.m, axis=1)
        self.buffer = np.zeros_like(self.theta)

    def train(self, steps):
        w = self.workers
        for _ in range(steps):
            noise = np.sqrt(w.noise) * self.random.standard_normal(self.models.shape)
            self.models = self.models - self.eta * (w.eigenvalues * (self.models - w.centres) + noise)

    def step(self, theta, buffer, gradient):
        """torch.optim.SGD with momentum, written as in its documentation (no dampening)."""
        beta, lr = self.outer.momentum, self.outer.lr
        buffer = beta * buffer + gradient
        return theta - lr * (gradient + beta * buffer if self.outer.nesterov else buffer), buffer

    def everywhere(self):
        self.models = np.repeat(self.theta[:, None], self.workers.m, axis=1)


def run(workers, merge, *, eta, tau, delay, rounds, outer, runs=1, seed=0):
    """Return theta of every run after each round, (rounds + 1, runs, d)."""
    s = Script(workers, eta=eta, outer=outer, runs=runs, seed=seed)
    seen = [s.theta]
    late = np.zeros_like(s.models)  # differences of the round before
    thetas, buffers = s.models.copy(), np.zeros_like(s.models)  # eager: one of each a worker
    for _ in range(rounds):
        if merge == "eager":
            s.models = thetas.copy()
            s.train(tau)
            fresh = thetas - s.models
            for i in range(workers.m):
                others = sum(late[:, k] for k in range(workers.m) if k != i)
                thetas[:, i], buffers[:, i] = s.step(thetas[:, i], buffers[:, i], (fresh[:, i] + others) / workers.m)
            late = fresh
            s.theta = thetas.mean(1)
        elif merge == "delayed":
            s.train(tau)
            fresh = s.theta[:, None] - s.models
            s.theta, s.buffer = s.step(s.theta, s.buffer, late.mean(1))
            late = fresh
            s.everywhere()
        else:
            s.train(tau - (0 if merge == "blocking" else delay))
            sent = s.models
            if merge != "blocking":
                s.train(delay)
            s.theta, s.buffer = s.step(s.theta, s.buffer, s.theta - sent.mean(1))
            flown = s.models - sent
            s.everywhere()
            if merge == "corrected":
                s.models = s.models + flown
        seen.append(s.theta)
    return np.array(seen)
