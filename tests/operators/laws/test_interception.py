"""The random numbers of torch, numpy and Python's random are found, chosen and put back."""

import gc
import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from bounds.claims import Unbiased
from operators.laws import Budget, Outcome, check
from operators.laws.kit.law import NotApplicable
from operators.laws.kit.subject import Subject
from operators.laws.randomness.draws import RULES, numpy_draws
from operators.laws.replay import Controlled, marginals

NUMPY = np.random.default_rng(11)
LEGACY = np.random.RandomState(11)
TORCH = torch.Generator().manual_seed(11)
D = 9
X = np.random.default_rng(1).standard_normal(D).astype(np.float32)


def seeded_from_a_draw(x):
    seed = int(torch.randint(0, 1 << 40, ()))
    return 2 * x * (torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) < 0.5)


COINS = {  # x -> 2 x or 0, each coordinate by a fair coin of its own
    "torch.rand": lambda x: 2 * x * (torch.rand(x.shape) < 0.5),
    "torch.rand of a generator": lambda x: 2 * x * (torch.rand(x.shape, generator=TORCH) < 0.5),
    "rand_like": lambda x: 2 * x * (torch.rand_like(x) < 0.5),
    "uniform_": lambda x: 2 * x * (torch.empty_like(x).uniform_(-1, 1) < 0),
    "bernoulli": lambda x: 2 * x * torch.bernoulli(torch.full_like(x, 0.5)),
    "bernoulli_": lambda x: 2 * x * torch.empty_like(x).bernoulli_(0.5),
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "randint": lambda x: 2 * x * torch.randint(0, 2, x.shape),
    "random_": lambda x: 2 * x * torch.empty(x.shape, dtype=torch.int64).random_(2),
    "randn": lambda x: 2 * x * (torch.randn(x.shape) > 0),
    "normal_": lambda x: 2 * x * (torch.empty_like(x).normal_(3.0, 2.0) > 3),
    "exponential_": lambda x: 2 * x * (torch.empty_like(x).exponential_() > np.log(2)),
    "multinomial": lambda x: 2 * x * torch.multinomial(torch.ones(2), x.numel(), replacement=True),
    "distributions": lambda x: 2 * x * torch.distributions.Bernoulli(0.5).sample(x.shape),
    "half precision": lambda x: 2 * x * (torch.rand(x.shape, dtype=torch.float16) < 0.5),
    "seeded from a draw": seeded_from_a_draw,
    "numpy.random": lambda x: 2 * x * (np.random.rand(x.size) < 0.5),  # noqa: NPY002
    "RandomState": lambda x: 2 * x * (LEGACY.random_sample(x.size) < 0.5),
    "Generator.random": lambda x: 2 * x * (NUMPY.random(x.size) < 0.5),
    "Generator.binomial": lambda x: 2 * x * NUMPY.binomial(1, 0.5, x.size).astype(np.float32),
    "default_rng()": lambda x: 2 * x * (np.random.default_rng().random(x.size) < 0.5),
    "random.random": lambda x: x * np.array([2 * (random.random() < 0.5) for _ in x], np.float32),
    "random.getrandbits": lambda x: x * np.array([2 * random.getrandbits(1) for _ in x], np.float32),
    "random.choice": lambda x: x * np.array([random.choice((0, 2)) for _ in x], np.float32),
}


def subject_of(name):
    from_torch = list(COINS).index(name) < list(COINS).index("numpy.random")
    return Subject(COINS[name], array="torch" if from_torch else "numpy")


@pytest.fixture(autouse=True, scope="module")
def objects_of_this_file_are_found():
    """Generators are looked for among the objects that can be garbage, where those of collected files are not."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.every(3)
@pytest.mark.parametrize("name", COINS)
def test_draws_are_chosen_so_that_mean_and_error_are_exact(name):
    run = Controlled(subject_of(name), X, np.random.default_rng(2))
    exact = marginals(run)

    assert run.n_words >= D
    assert np.abs(exact.mean - X).max() <= max(1e-6, 4 * run.resolution)
    assert exact.square.sum() == pytest.approx(float((X.astype(float) ** 2).sum()), rel=1e-6)
    assert np.array_equal(exact.largest, np.abs(2 * X.astype(float)))


def constant_torch(x):
    torch.manual_seed(0)
    return 2 * x * (torch.rand(x.shape) < 0.5)


def constant_numpy(x):
    return torch.from_numpy((np.random.default_rng(0).random(x.numel()) < 0.5).astype(np.float32)) * 2 * x


@pytest.mark.parametrize("function", [constant_torch, constant_numpy])
def test_a_generator_seeded_with_a_constant_is_not_random(function):
    run = Controlled(Subject(function), X, np.random.default_rng(2))

    assert run.n_words == 0
    assert np.abs(marginals(run).mean - X).max() > 0.1


def from_the_system(x):
    return 2 * x * torch.tensor([b < 128 for b in os.urandom(x.numel())])


def poisson(x):
    return x * torch.poisson(torch.ones_like(x))


def reseeding(x):
    np.random.seed(0)  # noqa: NPY002
    return 2 * x * torch.from_numpy(np.random.rand(x.numel()) < 0.5)  # noqa: NPY002


@pytest.mark.parametrize(
    ("function", "reason"),
    [(from_the_system, "every random number that can be intercepted"), (poisson, "aten.poisson"),
     (reseeding, "cannot be replayed")],
    ids=["system", "poisson", "reseeding"],
)  # fmt: skip
def test_what_cannot_be_chosen_is_said_in_a_sentence_and_left_to_statistics(function, reason):
    x = np.random.default_rng(1).standard_normal(33).astype(np.float32)
    with pytest.raises(NotApplicable, match=reason):
        Controlled(Subject(function), x, np.random.default_rng(2))

    report = check(
        function, claim=Unbiased(omega=1.0), budget=Budget.quick().untimed(), seed=1, laws=["exact-marginals"]
    )

    assert report["exact-marginals"].outcome is Outcome.NOT_APPLICABLE
    assert reason in report["exact-marginals"].text


def test_two_generators_of_one_seed_are_one_stream():
    """C(x) = x + s x - s' x with equal signs s, s' is x itself; with independent ones it is not."""

    def twice(x):
        seed = int(torch.randint(0, 1 << 40, ()))
        s, t = (torch.randint(0, 2, x.shape, generator=torch.Generator().manual_seed(seed)) for _ in range(2))
        return x + s * x - t * x

    run = Controlled(Subject(twice), X, np.random.default_rng(2))

    assert all(np.array_equal(run(run.random_words()), X) for _ in range(5))


def test_generators_are_given_back_as_they_were():
    functions = COINS["Generator.random"], COINS["RandomState"], COINS["random.random"]
    before = NUMPY.bit_generator, LEGACY.get_state(legacy=False), random.random, np.random.default_rng
    for function in functions:
        run = Controlled(Subject(function, array="numpy"), X, np.random.default_rng(2))
        state = NUMPY.bit_generator.state, LEGACY.get_state(legacy=False)["state"]["pos"]
        run(run.random_words())
        assert state == (NUMPY.bit_generator.state, LEGACY.get_state(legacy=False)["state"]["pos"])
    assert NUMPY.bit_generator is before[0]
    assert random.random is before[2]
    assert np.random.default_rng is before[3]
    assert "random" not in vars(random._inst)


def test_a_function_that_raises_leaves_the_generators_in_place():
    class Words:
        def __call__(self, root, n, start, kind=None):
            return np.zeros(n, np.uint32)

        def lend(self, root, capacity):
            return np.zeros(8, np.uint32)

        def returned(self, root, used):
            raise AssertionError("not reached")

    def fail():
        with numpy_draws(Words(), [NUMPY]):
            assert NUMPY.random() == 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert NUMPY.random() != 0


def test_random_operators_of_torch_are_known_by_their_tag():
    """A rule's name is that of a random operator; four distributions have no rule and are named in the report."""
    every = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    tagged = {name for name in every if hasattr(torch.ops.aten, name) and _is_random(getattr(torch.ops.aten, name))}

    assert set(RULES) <= tagged
    assert {"_standard_gamma", "_sample_dirichlet", "binomial", "poisson"} <= tagged - set(RULES)


def _is_random(packet):
    return any(torch.Tag.nondeterministic_seeded in getattr(packet, name).tags for name in packet.overloads())


REJECTING = """
import numpy as np
from operators.laws.randomness.draws import Reader
generator = np.random.default_rng(0)
for words in ([], [0] * 4, [2**32 - 1] * 4):
    generator.__init__(Reader(np.array(words, np.uint64)))
    for most in (3, 1000, 3 * 2**61 + 1):
        assert 0 <= generator.integers(most, size=9, dtype=np.int64).max() < most
    assert np.isfinite(generator.standard_normal(9)).all()
    assert np.isfinite(generator.gamma(0.3, size=9)).all()
    assert (generator.hypergeometric(60, 80, 40, 9) <= 40).all()
"""


@pytest.mark.thorough
def test_a_sampler_that_rejects_comes_to_an_end_on_any_words():
    subprocess.run([sys.executable, "-c", REJECTING], check=True, timeout=120)  # a loop in C would not be interrupted
