"""What a message costs and loses: its bits and the squared error of its decoded vector."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from operators import Key, Message, Operator

LEVEL = 0.95  # of Student intervals, two-sided


def coded(operator: Operator, x: np.ndarray, key: Key) -> tuple[Message, np.ndarray]:
    """Return the message of a vector and the error of the decoded one, in float64."""
    message = operator.encode(x, key=key)
    return message, operator.decode(message, d=x.size, key=key).numpy().astype(np.float64) - x


def bits_and_nmse(operator: Operator, x: np.ndarray, key: Key) -> tuple[float, float]:
    """Return bits per coordinate and squared error over squared norm of one message."""
    message, error = coded(operator, x, key)
    wide = x.astype(np.float64)
    return message.bits / x.size, float(error @ error / (wide @ wide))


def of_gaussian_vectors(operator: Operator, d: int, n: int, seed: int) -> dict[str, float]:
    """Return means and largest values of bits and NMSE over n messages, each of a vector and with a key of its own.

    Means have the half widths of their Student intervals.
    """
    rng = np.random.default_rng(seed)
    vectors = (rng.standard_normal(d, dtype=np.float32) for _ in range(n))
    sent = np.array([bits_and_nmse(operator, x, Key(seed, step=i)) for i, x in enumerate(vectors)])
    wide = float(student.ppf((1 + LEVEL) / 2, n - 1)) / np.sqrt(n)
    found: dict[str, float] = {}
    for name, values in (("bits", d * sent[:, 0]), ("nmse", sent[:, 1])):
        found |= {name: float(values.mean()), f"{name}_half_width": float(values.std(ddof=1) * wide)}
        found[f"most_{name}"] = float(values.max())
    return found
