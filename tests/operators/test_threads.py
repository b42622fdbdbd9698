"""Threads: the same bytes for every number of them, in forks and beside other threads."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CorruptMessage, Key, all_operators, get_threads, parse, pieces, set_threads, specification
from operators.kernels import threads
from operators.random import bits32, words_from
from tests.pooled import pooled

EXAMPLES = tuple(specification(example) for cls in all_operators().values() for example in cls.examples())
MORE = (
    *("qsgd:7,code=fixed", "qsgd:7,norm=max,bucket=100,code=fixed", "qsgd:3,bucket=5000", "qsgd:4,code=dense"),
    *("qsgd:4,code=flag,norm=max", "qsgd:500", "qsgd:1,bucket=7", "eden:bits_per_coordinate=3"),
)
NUMBERS = 1, 2, 3, 5
LONG = 2 * threads.LEAST


@pytest.fixture(autouse=True)
def default_threads():
    yield
    set_threads(None)


def vector(d, seed=0):
    x = torch.randn(d, generator=torch.Generator().manual_seed(seed + d)).clamp(-16, 16)
    x[d // 5 : d // 2] = 0  # as many coordinates as several parts hold
    return x


def sent(text, d, n):
    operator, x, key = parse(text), vector(d), Key(3)
    set_threads(n)
    message = operator.encode(x, key=key)
    decoded = operator.decode(message, d=d, key=key)
    return message.bits, message.payload.numpy().tobytes(), decoded.numpy().tobytes()


@pooled("text", EXAMPLES + MORE)
@given(d=st.integers(1, 60_000), least=st.sampled_from([512, 4096, 10_000]))
@settings(max_examples=max(2, settings().max_examples // 50), deadline=None)
def test_bytes_do_not_depend_on_the_number_of_threads(text, d, least):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "LEAST", least)
        patch.setattr(pieces, "RUN", 4096)
        alone = sent(text, d, 1)
        for n in NUMBERS[1:]:
            assert sent(text, d, n) == alone, n


@pytest.mark.thorough
@pooled("text", EXAMPLES + MORE)
def test_bytes_of_long_vectors_do_not_depend_on_the_number_of_threads(text):
    d = 6 * threads.LEAST + 4097
    alone = sent(text, d, 1)
    for n in NUMBERS[1:]:
        assert sent(text, d, n) == alone, n


@pytest.mark.parametrize("text", ["scaled_sign", "qsgd:4", "natural", "tcdq:1.0", "topk:0.01"])
def test_short_vectors_start_no_threads(text, monkeypatch):
    monkeypatch.setattr(threads, "_helpers", lambda: pytest.fail("a short vector took a second thread"))
    sent(text, threads.LEAST + 5, 2)


@pytest.mark.parametrize("text", ["scaled_sign", "qsgd:4", "natural", "tcdq:1.0", "eden"])
def test_long_vectors_are_shared(text, monkeypatch):
    started = []
    helpers = threads._helpers
    monkeypatch.setattr(threads, "_helpers", lambda: started.append(text) or helpers())
    sent(text, 3 * threads.LEAST, 2)
    assert started


def test_the_number_of_threads_is_that_of_torch_unless_it_is_set():
    assert get_threads() == torch.get_num_threads()
    set_threads(3)
    assert get_threads() == 3
    assert threads.mapped(lambda _: get_threads(), range(6), d=LONG) == [1] * 6  # none are nested
    assert get_threads() == 3
    with pytest.raises(ValueError, match="at least 1"):
        set_threads(0)


def test_helpers_take_part_and_results_keep_their_order():
    set_threads(3)
    both = threading.Barrier(2)

    def work(i):
        if i < 2:
            both.wait(timeout=20)  # two threads must be inside at once
        return i, threading.get_ident()

    results = threads.mapped(work, range(10), d=LONG)
    assert [i for i, _ in results] == list(range(10))
    assert len({thread for _, thread in results}) > 1


def test_the_error_of_the_first_item_is_raised():
    set_threads(4)

    def work(i):
        if i % 3 == 2:
            raise CorruptMessage(str(i))

    for _ in range(20):
        with pytest.raises(CorruptMessage, match=r"^2$"):
            threads.mapped(work, range(12), d=LONG)


def test_supplied_words_reach_all_threads(monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 4096)
    monkeypatch.setattr(pieces, "RUN", 4096)

    def other_words(key, n, start):
        with words_from(None):
            return bits32(key.fold_in(9), n, start=start)

    for text in ("natural", "klevel:16", "qsgd:4,code=fixed"):
        with words_from(other_words):
            assert sent(text, 50_000, 1) == sent(text, 50_000, 3)


def test_a_fork_starts_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 4096)
    expected = sent("qsgd:4", 50_000, 3)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(sent, ("qsgd:4", 50_000, 3)).get(timeout=60) == expected


def test_callers_in_several_threads_share_the_helpers(monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 4096)
    expected = sent("qsgd:4", 50_000, 1)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: sent("qsgd:4", 50_000, 3), range(12))) == [expected] * 12
