"""What all tests share: one thread a process, the hypothesis profiles, and a browser.

More threads than one only wait for each other where two workers share two cores; set before torch is imported.
Derandomised and without deadlines by default; CI draws more examples with ``--hypothesis-profile=ci``, the nightly
tier still more; by hand ``--hypothesis-profile=deep`` draws others.  The global random streams begin every test alike,
whatever ran before it in its process.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gc
import random
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
import tiers


def keep_garbage_of_the_parent():
    """A fork that collected a process group of this process would wait for threads that it does not have."""
    gc.freeze()
    gc.enable()


os.register_at_fork(before=gc.disable, after_in_parent=gc.enable, after_in_child=keep_garbage_of_the_parent)
gc.disable()  # until the tests are collected: looking for garbage took half of that time

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started with & by a shell: what tests start would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

settings.register_profile("quick", derandomize=True, database=None, max_examples=15, **COMMON)
settings.register_profile("ci", derandomize=True, database=None, max_examples=60, **COMMON)
settings.register_profile("nightly", derandomize=True, database=None, max_examples=300, **COMMON)
settings.register_profile("deep", max_examples=20_000, **COMMON)
if settings.get_current_profile_name() == "default":
    settings.load_profile("quick")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
BROWSER_REQUIRED = os.environ.get("REQUIRE_BROWSER") == "1"
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

SHARED = {  # what is started once for tests of several files -> where they are
    "the calculator's server": ("tests/ratedist/interfaces/http/",),
    "ratedist run smoke": ("tests/gpu_validation/test_cli.py", "tests/gpu_validation/studies/grid/test_study.py"),
}


FIRST = (  # long ones, and those whose ranks are forks of this process: begun before it has threads of its own
    "tests/docs/test_site.py",
    *("tests/gpu_validation/studies/test_on_engine.py", "tests/gpu_validation/averaging/test_survival.py"),
    *("tests/journeys/test_journeys.py", "tests/compatibility/test_elastic_restart.py"),
    *("tests/gpu_validation/test_killed_ranks.py", "tests/gpu_validation/studies/test_overlap.py"),
    *("tests/bounds/pep/test_different_data.py", "tests/operators/laws/test_every_operator.py"),
    *("tests/test_framework_scripts.py", "tests/test_public_scripts.py", "tests/docs/test_notebooks.py"),
    *("tests/test_ten_minute_guide.py", "tests/test_training_guides.py", "tests/test_readme.py"),
    *("tests/test_auto_tau_guide.py", "tests/gpu_validation/adapters/test_flower.py"),
    *("tests/gpu_validation/studies/engines/test_dask.py", "tests/test_ctrl_c.py", "tests/test_installed_wheel.py"),
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Half as many workers again as cores: a quarter of their time tests wait for processes, networks and time-outs."""
    return max(1, 3 * (os.cpu_count() or 1) // 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadfile`` keep together what shares something that is costly to start, not only a file."""
    if config.option.dist != "loadfile":
        return None
    config.option.loadscopereorder = False  # which would begin with the files of most tests
    from xdist.scheduler import LoadFileScheduling

    class ByWhatTheyShare(LoadFileScheduling):
        """Scopes of several files."""

        def _split_scope(self, nodeid):
            return scope_of(nodeid)

    return ByWhatTheyShare(config, log)


def pytest_addoption(parser):
    """``--tier quick``: what ``make test`` runs; ``--tier rest``: what is left of the full tier."""
    parser.addoption("--tier", choices=["quick", "rest", "full", "nightly"], help="a tier of tests/tiers.py")


def pytest_configure(config):
    """Let a tier alone decide what runs, whatever the marks."""
    if config.getoption("--tier"):
        config.option.markexpr = ""


def pytest_ignore_collect(collection_path, config):
    """Import no file that has nothing of the tier."""
    if config.getoption("--tier") == "rest" and collection_path.name.startswith("test_"):
        return not (collection_path.is_dir() or tiers.may_have_rest(collection_path)) or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Sort cases into tiers (``tiers.py``), and begin with the longest files.

    Of a test marked ``every(n)`` the first case, the n-th after it and so on are quick, the others thorough.
    """
    cases = Counter()
    for item in items:
        if tiers.is_nightly(item.nodeid):
            item.add_marker(pytest.mark.slow)
        mark = item.get_closest_marker("every")
        if mark is None or item.get_closest_marker("thorough") or item.get_closest_marker("slow"):
            continue
        test = item.nodeid.partition("[")[0]
        if cases[test] % mark.args[0]:
            item.add_marker(pytest.mark.thorough)
        cases[test] += 1
    if tier := config.getoption("--tier"):
        chosen = tiers.selected(tier, {item.nodeid: mark_of(item) for item in items})
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]
    tests = Counter(map(file_of, items))
    items.sort(key=lambda item: (file_of(item) not in FIRST, -tests[file_of(item)], file_of(item)))


def pytest_collection_finish():
    """Look for garbage again, but not among what was imported and collected."""
    gc.freeze()
    gc.enable()


def scope_of(nodeid):
    """What runs in one process: the tests that share something, or those of a file."""
    return next((name for name, starts in SHARED.items() if nodeid.startswith(starts)), nodeid.partition("::")[0])


def mark_of(item):
    """The mark that decides about the tier; empty for none."""
    return next((mark for mark in ("slow", "thorough") if item.get_closest_marker(mark)), "")


def file_of(item):
    """The file of a test."""
    return item.nodeid.partition("::")[0]


CLOCK = tiers.clock()


if CLOCK is not None:

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item):
        """Record the processor seconds of every case, as the environment asks."""
        CLOCK.start()
        try:
            return (yield)
        finally:
            CLOCK.lap(item.nodeid)


@pytest.fixture(autouse=True)
def global_streams_begin_alike():
    """No test depends on how much the tests before it drew: they differ from tier to tier and worker to worker."""
    random.seed(20261122)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(20261122)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(20261122)


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    if CHROMIUM is None and not BROWSER_REQUIRED:
        pytest.skip("no Chromium is installed: apt-get install chromium; REQUIRE_BROWSER=1 makes this a failure")
    assert CHROMIUM is not None, "REQUIRE_BROWSER=1, but no Chromium is installed: apt-get install chromium"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield chromium
        chromium.close()
