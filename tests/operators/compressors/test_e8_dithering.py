"""E8 dithering against a scalar oracle of the quantiser and the coder, its error law, its rate, and damage."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from operators import E8Dithering, Key
from operators.coding import e8_model
from operators.random import words_from

from ..oracles import refuses_payloads
from ..plain_philox import bits32_numpy

INSTANCES = [*E8Dithering.examples(), E8Dithering(1e-6)]


def nearest_points(y):
    """The point of E8 nearest to y, from all rounding choices of both cosets."""
    best = None
    for half in (0.0, 0.5):
        choices = [(math.floor(v - half) + half, math.floor(v - half) + 1 + half) for v in y]
        for q in itertools.product(*choices):
            if round(sum(v - half for v in q)) % 2 == 0:
                distance = math.fsum((a - b) ** 2 for a, b in zip(q, y, strict=True))
                if best is None or distance < best[0]:
                    best = distance, q
    return best[1]


def quantised(x, omega, words):
    """(q - u) times the step, coordinate by coordinate, in plain Python."""
    norm = float(np.float32(math.sqrt(math.fsum(float(v) ** 2 for v in x))))
    step, values = norm * math.sqrt(omega / (len(x) * e8_model.G)), []
    whole = len(x) - len(x) % 8
    for start in range(0, whole, 8):
        u = [(int(w) + 0.5) * 2**-31 for w in words[start : start + 8]]
        y = [float(v) * (1 / step) + a for v, a in zip(x[start:], u, strict=False)]
        values += [step * (q - a) for q, a in zip(nearest_points(y), u, strict=True)]
    for v, w in zip(x[whole:], words[whole:], strict=True):
        u = (int(w) + 0.5) * 2**-31
        values.append(step * e8_model.SINGLE * (math.floor(float(v) * (1 / step) / e8_model.SINGLE + u + 0.5) - u))
    return [float(np.float32(v)) for v in values]


@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 40])
def test_decoded_values_equal_the_oracle(operator, n, key):
    rng = np.random.default_rng(n)
    for x in (rng.standard_normal(n), rng.standard_cauchy(n), np.ones(n), 2.0**90 * rng.standard_normal(n)):
        x = x.astype(np.float32)
        assert operator(x, key=key).tolist() == quantised(x, operator.omega, bits32_numpy(key, n))


def omega_code(n):
    text = "0"
    while n > 1:
        text, n = f"{n:b}" + text, len(f"{n:b}") - 1
    return text


class Coder:
    """An adaptive arithmetic coder with one unbounded integer and no carries."""

    def __init__(self, operator, gain):
        counts, self.raw = e8_model.model(operator.omega)
        self.omega, self.gain, self.still = operator.omega, gain, 0.0  # bits with counts that stand still
        self.counts = [[int(c) for c in row[: e8_model.SYMBOLS]] for row in counts]
        self.low, self.width, self.shift = 0, 2**64 - 1, 0

    def symbol(self, context, symbol):
        counts = self.counts[context]
        first = e8_model.model(self.omega).counts[context]
        self.still += math.log2(first[e8_model.TOTAL] / first[symbol])
        self.narrow(sum(counts[:symbol]), counts[symbol], sum(counts))
        counts[symbol] += self.gain
        if sum(counts) > e8_model.LIMIT:
            self.counts[context] = [(c + 1) // 2 for c in counts]

    def narrow(self, start, size, total):
        share = self.width // total
        self.low += share * start
        self.width = share * size if start + size < total else self.width - share * start
        while self.width < 2**56:
            self.low, self.width, self.shift = self.low << 8, self.width << 8, self.shift + 8

    def away(self, context, n, low_bits):
        high = n >> low_bits
        symbol = 2 * high - 1 if high > 0 else -2 * high
        self.symbol(context, min(symbol, e8_model.SYMBOLS - 1))
        text = omega_code(symbol - e8_model.SYMBOLS + 2) if symbol >= e8_model.SYMBOLS - 1 else ""
        for bit in text + (f"{n % 2**low_bits:0{low_bits}b}" if low_bits else ""):
            self.narrow(int(bit), 1, 2)
            self.still += 1

    def ending(self):
        t = next(t for t in range(1, 64) if ((-(-self.low >> (64 - t))) + 1) << (64 - t) <= self.low + self.width)
        return f"{-(-self.low >> (64 - t)):0{self.shift + t}b}"


def coset_distance(u, half):
    rounded = [math.floor(v - half + 0.5) for v in u]
    off = [v - half - r for v, r in zip(u, rounded, strict=True)]
    total = sum(o * o for o in off)
    return total + (1 - 2 * max(map(abs, off)) if sum(rounded) % 2 else 0.0)


def coded(operator, points, words, gain):
    """(text of the stream, bits with counts that stand still), from points and words."""
    coder, u = Coder(operator, gain), [(int(w) + 0.5) * 2**-31 for w in words]
    for start in range(0, len(points) - 7, 8):
        block, v = points[start : start + 8], u[start : start + 8]
        nearer = coset_distance(v, 0.0) - coset_distance(v, 0.5)
        half = block[0] % 1
        coder.symbol(e8_model.COSETS + min(max(math.trunc((nearer + 1) * 8), 0), 15), int(2 * half))
        z = [a - half for a in v]
        m, base = [round(q - half) for q in block], [math.floor(a + 0.5) for a in z]
        off = [a - b for a, b in zip(z, base, strict=True)]
        for i in range(7):
            context = min(int(abs(off[i]) * 16), 7)
            if (sum(m[:i]) + sum(base[i:])) % 2:
                context += 8 * (1 + (abs(off[i]) > max(map(abs, off[i + 1 :]))))
            coder.away(context, (m[i] - base[i]) * (1 if off[i] >= 0 else -1), coder.raw)
        parity = sum(m[:7]) % 2
        last = parity + 2 * math.floor((z[7] - parity) / 2 + 0.5)
        away = (m[7] - last) // 2 * (1 if z[7] >= last else -1)
        coder.away(24 + min(int(abs(z[7] - last) * 8), 7), away, max(0, coder.raw - 1))
    for q, z in list(zip(points, u, strict=True))[len(points) // 8 * 8 :]:
        base = math.floor(z + 0.5)
        coder.away(32 + min(int(abs(z - base) * 16), 7), round(q - base) * (1 if z >= base else -1), coder.raw)
    return coder.ending(), coder.still


@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
@pytest.mark.parametrize("n", [1, 8, 9, 200])
def test_payload_equals_the_oracle_s(operator, n, key, bitstring, float_field):
    """From the decoded points, with an unbounded integer instead of carries."""
    words = bits32_numpy(key, n)
    for x in (np.random.default_rng(n).standard_normal(n), np.eye(n)[0] * 3.0):
        message = operator.encode(x, key=key)
        norm = float(np.float32(np.linalg.norm(x.astype(np.float32).astype(float))))
        step = norm * math.sqrt(operator.omega / (n * e8_model.G))
        y = operator.decode(message, d=n, key=key).double().numpy()
        whole, u = n - n % 8, (words + 0.5) * 2.0**-31
        gaps = np.where(np.arange(n) < whole, 1.0, e8_model.SINGLE)
        points = np.round(2 * (y / (step * gaps) + u)) / 2
        text, still = coded(operator, points.tolist(), words, e8_model.GAIN)
        learns = len(text) <= still + 3
        if not learns:
            text, _ = coded(operator, points.tolist(), words, 0)
        assert bitstring(message) == float_field(norm if learns else -norm) + text
        assert message.bits <= operator.bits(n).worst_case


@pytest.mark.parametrize("omega", [1 / 3, 1e-3])
def test_message_with_counts_that_stand_still_decodes_alike(omega, key, message_of, float_field):
    n, operator = 41, E8Dithering(omega)
    x, words = np.random.default_rng(0).standard_normal(n).astype(np.float32), bits32_numpy(key, n)
    y = operator(x, key=key)
    norm = float(np.float32(np.linalg.norm(x.astype(float))))
    step = norm * math.sqrt(omega / (n * e8_model.G))
    gaps = np.where(np.arange(n) < 40, 1.0, e8_model.SINGLE)
    points = np.round(2 * (y.astype(float) / (step * gaps) + (words + 0.5) * 2.0**-31)) / 2
    text, still = coded(operator, points.tolist(), words, 0)
    assert len(text) <= still + 3
    assert operator.decode(message_of(float_field(-norm) + text), d=n, key=key).tolist() == y.tolist()


def test_second_moment_is_that_of_the_voronoi_cell(key):
    """929/12960, over 10^5 blocks within five standard errors; and the same for each coordinate."""
    d = 8 * 10**5
    error = E8Dithering(1.0)(np.ones(d, np.float32), key=key).astype(float) - 1
    squares = (error**2).reshape(-1, 8)
    assert Fraction(929, 12960) == pytest.approx(e8_model.G)
    assert abs(squares.sum(1).mean() / 8 - 1) < 5 * squares.sum(1).std() / 8 / math.sqrt(10**5)
    assert (np.abs(squares.mean(0) - 1) < 5 * squares.std(0) / math.sqrt(10**5)).all()
    assert (np.abs(error.reshape(-1, 8).mean(0)) < 5 / math.sqrt(10**5)).all()


@pytest.mark.parametrize("x", [np.array([1.0]), np.array([0.3, -2.0, 0.0])])
def test_after_the_last_block_the_error_is_exactly_uniform(x):
    """Every quantile of the words: mean x, mean squared error omega |x|^2."""
    operator, steps, total, square = E8Dithering(0.25), 4096, 0.0, 0.0
    for j in range(steps):
        with words_from(lambda key, n, start, w=(2 * j + 1) * 2**32 // (2 * steps): np.full(n, w, np.uint32)):
            y = operator(x, key=Key(0))
        total, square = total + y, square + ((y - x) ** 2).sum()
    assert np.abs(total / steps - x).max() < 5 / steps
    assert square / steps / (x @ x) == pytest.approx(0.25, rel=0.003)


@pytest.mark.parametrize("omega", [1.0, 1 / 3, 0.01, 1e-4])
def test_gaussian_costs_the_limit_and_little_more_than_the_space_filling_loss(omega):
    """log2(1 + 1/omega)/2 + .1457, and at most .03 bit for contexts and learning."""
    x = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    bits = E8Dithering(omega).encode(x, key=Key(0)).bits / x.size
    least = math.log2(1 + 1 / omega) / 2 + math.log2(2 * math.pi * math.e * e8_model.G) / 2
    assert least < bits < least + 0.03


@pytest.mark.parametrize("omega", [4.0, 1 / 3, 0.01, 1e-6])
@pytest.mark.parametrize("d", [1, 9, 64, 1000])
def test_no_mean_length_exceeds_its_limit_and_no_length_the_worst_case(omega, d):
    """40 messages of each vector; the mean less five standard errors."""
    operator, rng = E8Dithering(omega), np.random.default_rng(d)
    size, step = operator.bits(d), math.sqrt(omega / (d * e8_model.G))
    half = np.full(d, step / 2)  # the middle between two points, at unit norm
    half[0] = math.sqrt(max(0.0, 1 - (half[1:] ** 2).sum()))
    for x in (rng.standard_normal(d), rng.standard_cauchy(d), np.ones(d), np.eye(d)[0], half):
        bits = [operator.encode(x, key=Key(0, step=t)).bits for t in range(40)]
        assert np.mean(bits) - 5 * np.std(bits) / math.sqrt(40) <= size.expected_upper
        assert max(bits) <= size.worst_case


@pytest.mark.parametrize("omega", [1 / 3, 1e-3])
def test_starting_counts_never_cost_more_than_the_inequality_of_the_limits(omega):
    """Every symbol that some q - u leads to, at 2000 dithers: bits <= a + b z^2."""
    a, b, _ = e8_model._prices(omega)
    coder, rng = Coder(E8Dithering(omega), 0), np.random.default_rng(0)
    for z in rng.uniform(0, 2, 2000):
        base, n = math.floor(z + 0.5), int(rng.integers(-300, 300)) >> int(rng.integers(0, 9))
        before = coder.still
        coder.away(min(int(abs(z - base) * 16), 7), n * (1 if z >= base else -1), coder.raw)
        assert coder.still - before <= a + b * (base + n - z) ** 2 + 1e-9


def test_a_spike_is_escaped_cheaply(key):
    x = np.zeros(10_000)
    x[17] = 1
    assert E8Dithering(1e-6).encode(x, key=key).bits < 9 * x.size
    assert E8Dithering(1e-6)(x, key=key)[17] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("omega", [0.0, 1e-7, 2e6, math.nan])
def test_meaningless_parameter_is_refused(omega):
    with pytest.raises(ValueError, match="omega must"):
        E8Dithering(omega)


def test_norm_beyond_binary32_is_an_error(key):
    with pytest.raises(ValueError, match="rescale"):
        E8Dithering().encode(np.full(4, 3e38, np.float32), key=key)


@pytest.mark.parametrize(
    "text", ["", "0" * 33, "1" * 32, "0" + "1" * 8 + "0" * 23, "1" + "0" * 31, "00111111100000000000000000000000"]
)
def test_payload_that_nobody_sends_is_refused(text, message_of):
    refuses_payloads(E8Dithering(), 9, message_of(text), key=Key(0))


@pytest.mark.parametrize("change", ["cut", "zero", "one", "byte", "flip"])
def test_damage_of_the_ending_is_refused(change, key, bitstring, message_of):
    text = bitstring(E8Dithering().encode(np.arange(100.0), key=key))
    bad = {
        "cut": text[:-1],
        "zero": text + "0",
        "one": text + "1",
        "byte": text + "0" * 8,
        "flip": text[:-1] + ("0" if text[-1] == "1" else "1"),
    }[change]
    refuses_payloads(E8Dithering(), 100, message_of(bad), key=key)
