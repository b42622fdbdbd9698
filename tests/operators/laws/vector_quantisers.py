"""Vector quantisers as other projects write them, dense numpy with a rotation drawn from a seed: honest and wrong."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from bounds.special.lloyd_max import lloyd_max_levels, lloyd_max_thresholds
from bounds.special.sphere_quantiser import lloyd_max_moments

GAIN = math.sqrt(math.pi / 2)


def haar(d, rng):
    """QR of a Gaussian matrix with the signs of the diagonal put right."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def hadamard(d, rng):
    """One randomised Hadamard matrix of the largest power of two; the other coordinates are left alone."""
    h, p = np.ones((1, 1)), 1 << (d.bit_length() - 1)
    while len(h) < p:
        h = np.block([[h, h], [h, -h]])
    matrix = np.eye(d)
    matrix[:p, :p] = h * rng.choice([-1.0, 1.0], p) / math.sqrt(p)
    return matrix


def hadamard_signs(d):
    """Of the Hadamard matrix, d a power of two: -1 to the number of common ones of row and column."""
    return scipy.linalg.hadamard(d, dtype=float)


def levels_of(v, bits):
    """The nearest Lloyd-Max levels."""
    if bits == 0:
        return np.zeros_like(v)
    return lloyd_max_levels(bits)[np.searchsorted(lloyd_max_thresholds(bits), v)]


class TurboQuant:
    """The form for inner products, of b bits; what is wrong in a subclass is one method or one number."""

    gain, stored, bits = GAIN, np.float64, 2

    def __init__(self, seed, d=None):
        self.rng = np.random.default_rng(seed)
        self.d = d

    def __call__(self, x):
        d = x.size
        rotation, projection = self.matrices(d)
        norm = float(self.stored(np.linalg.norm(x.astype(float))))
        if norm == 0:
            return np.zeros(d)
        v = rotation @ (x / norm) * math.sqrt(d)
        q = levels_of(v, self.bits - 1)
        coarse = rotation.T @ q / math.sqrt(d)
        r = x / norm - coarse
        return norm * (coarse + self.rest(r, projection))

    def matrices(self, d):
        return haar(d, self.rng), self.rng.standard_normal((d, d))

    def rest(self, r, projection):
        return self.length(r) * self.gain / r.size * projection.T @ self.signs(projection @ r)

    def length(self, r):
        return np.linalg.norm(r)

    def signs(self, projected):
        return np.where(projected > 0, 1.0, -1.0)


class DeadSigns(TurboQuant):
    """All sign bits are +1, so that the second stage does nothing (as in quantumaikr/quant.cpp#14)."""

    def signs(self, projected):
        return np.ones_like(projected)


class NoResidualNorm(TurboQuant):
    """The residual's norm is 0, or was never stored (as in curiosity-ai/hnsw-sharp#26)."""

    def length(self, r):
        return 0.0


class NoGain(TurboQuant):
    """sqrt(pi/2) forgotten."""

    gain = 1.0


class RootTwoLarge(TurboQuant):
    """Output off by sqrt 2."""

    def __call__(self, x):
        return math.sqrt(2) * super().__call__(x)


class RootTwoSmall(TurboQuant):
    """Output off by 1/sqrt 2."""

    def __call__(self, x):
        return super().__call__(x) / math.sqrt(2)


class RotationUsedTwice(TurboQuant):
    """The rotation serves as the projection too: the signs depend on what the levels left."""

    def matrices(self, d):
        rotation = haar(d, self.rng)
        return rotation, math.sqrt(d) * rotation


class SameSigns(TurboQuant):
    """Rotation and projection are the same randomised Hadamard matrix, drawn from one seed."""

    def matrices(self, d):
        rotation = hadamard(d, self.rng)
        return rotation, math.sqrt(d) * rotation


class NormOfOne(TurboQuant):
    """The norm is not stored: right for normalised embeddings only."""

    def __call__(self, x):
        norm = np.linalg.norm(x.astype(float))
        return super().__call__(x / norm if norm else x)


class HalfNorm(TurboQuant):
    """The norm is stored in float16."""

    stored = np.float16


class PowerOfTwo(TurboQuant):
    """Whole blocks only: what is left after them is dropped (as in TheTom/llama-cpp-turboquant#4)."""

    def __call__(self, x):
        p = 1 << (x.size.bit_length() - 1)
        return np.concatenate([super().__call__(x[:p]), np.zeros(x.size - p)])


class Padded(TurboQuant):
    """Pads with zeros to a power of two and does not cut the result."""

    def __call__(self, x):
        p = 1 << (x.size - 1).bit_length()
        return super().__call__(np.concatenate([x, np.zeros(p - x.size)]))


class SampleDeviation(TurboQuant):
    """Normalises by the sample standard deviation with n - 1 below: 0/0 for one coordinate."""

    def __call__(self, x):
        with np.errstate(all="ignore"):
            return np.std(x.astype(float), ddof=1) * super().__call__(x / np.std(x.astype(float), ddof=1))


class MeanSquare:
    """The nearest levels and nothing more: EDEN without its factor, TurboQuant's other form used as if unbiased."""

    bits = 2

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, x):
        d, norm = x.size, np.linalg.norm(x.astype(float))
        if norm == 0:
            return np.zeros(d)
        rotation = self.rotation(d)
        v = rotation @ (x / norm) * math.sqrt(d)
        q = levels_of(v, self.bits)
        return norm / math.sqrt(d) * self.scale(v, q) * rotation.T @ q

    def rotation(self, d):
        return haar(d, self.rng)

    def scale(self, v, q):
        return 1.0


class Renormalised(MeanSquare):
    """Levels scaled to the norm of x: lengths are right, inner products are not (as in workglow-dev/libs#781)."""

    def scale(self, v, q):
        return math.sqrt(v @ v / (q @ q))


class InertSigns(MeanSquare):
    """Random signs after the Hadamard matrix instead of before: they change nothing (Scottcjn/turboquant-elyan#10)."""

    bits = 1

    def rotation(self, d):
        return self.rng.choice([-1.0, 1.0], d)[:, None] * np.abs(hadamard(d, self.rng)) * hadamard_signs(d)

    def scale(self, v, q):
        return v @ v / (v @ q)


class EDEN(MeanSquare):
    """The constant unbiased scale."""

    def scale(self, v, q):
        return 1 / lloyd_max_moments(self.bits, v.size)[0]


class StructuredEDEN(MeanSquare):
    """The paper's scale under one randomised Hadamard rotation: unbiased along x, not elsewhere."""

    bits = 1

    def rotation(self, d):
        return hadamard(d, self.rng)

    def scale(self, v, q):
        return v @ v / (v @ q)


def rabitq(seed):
    """(encode, estimate) with one bit a coordinate: <c, q>/<c, u>, c the rotated signs, queries rotated alike."""
    rng = np.random.default_rng(seed)
    rotations = {}

    def rotation(d):
        if d not in rotations:
            rotations[d] = haar(d, rng)
        return rotations[d]

    def encode(x):
        z = rotation(x.size) @ x.astype(float)
        signs = np.where(z > 0, 1.0, -1.0)
        return signs, (z @ z) / (z @ signs) if z.any() else 0.0

    def estimate(q, code):
        signs, factor = code
        return factor * (signs @ (rotation(q.size) @ q.astype(float)))

    return encode, estimate


def with_bits(kind, bits):
    """The same quantiser at another rate."""
    return type(kind.__name__, (kind,), {"bits": bits})
