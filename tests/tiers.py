"""Which tests run when: the quick, the full and the nightly tier.

Quick (``make test``): cases of at most 0.2 s, and slower ones that the last change reaches, up to a budget.
Full (CI): quick, and of every test the slower cases that the commit draws, up to ``DRAWN_S``, and the built site.
Cases marked ``thorough``, those that ``every(n)`` leaves out among them, count as slower ones.
Nightly (``make test-nightly``): the cases not drawn, tests marked ``slow``, and the long cases of ``NIGHTLY``.
``--tier rest`` is full without quick.  Full and nightly at one commit are everything.

``durations.json`` holds the processor seconds of the slower cases, processes that they start included.
``CPU_OUT=file pytest ...`` appends a line for every case; ``python tests/tiers.py file ...`` writes ``durations.json``.
What several cases share is paid by the first of them: measure all cases first, then the quick tier until it has few
slow ones, and give the files of all these runs.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import defaultdict, deque
from functools import cache
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).parent.parent
DURATIONS = Path(__file__).parent / "durations.json"
FAST_S, BUDGET_S = 0.2, 20.0  # processor seconds: of a fast case, and of all slower ones that a change reaches
DRAWN_S = 1.0  # processor seconds of the slower cases of one test in the full tier; one case at least is drawn
CORES = 2
SITE = "tests/docs/"  # tests marked slow there belong to the full tier
FROM = re.compile(
    r"^\s*from\s+((?:bounds|operators|ratedist|gpu_validation)[\w.]*)\s+import\s+(\([^)]*\)|[^\n]*)", re.M
)
ALIASED = re.compile(r"^\s*import\s+((?:bounds|operators|ratedist|gpu_validation)[\w.]*)(?:\s+as\s+(\w+))?", re.M)
RELATIVE = re.compile(r"^from (\.+)([\w.]*) import (.+)$", re.M)  # of test files: what tests share
PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")
# Module -> how the names of the modules begin that it finds at run time, where no import shows them.
FOUND = {
    "bounds.catalogue": ("bounds.limits.", "bounds.theorems."),
    "operators.catalogue": (
        "operators.compressors.",
        "operators.combinators.",
        "operators.aggregate.",
        "operators.feedback.",
        "operators.summed.",
    ),
    "operators.kernels.backend": ("operators.kernels.",),
    "ratedist.calls": ("ratedist.calls.",),
    "gpu_validation.studies.engines.engine": ("gpu_validation.studies.engines.worker",),
    "gpu_validation.studies.outside": ("gpu_validation.studies.",),
}

# Test -> the cases that stay in the full tier (a pattern of their names; "" for none), and what else stays there.
NIGHTLY = {
    "tests/journeys/test_journeys.py::test_it_arrives": "",  # every command of a journey has its own test
    "tests/test_ten_minute_guide.py::test_the_guide_leads_from_a_script_to_a_plan": "",  # test_training_guides
    "tests/test_auto_tau_guide.py": "",  # local_sgd/test_auto*.py
    "tests/test_installed_wheel.py": "",  # test_architecture: the files of the wheel
    "tests/compatibility/test_elastic_restart.py": "",  # distributed/test_torchrun.py
    "tests/gpu_validation/studies/engines/test_dask.py": "",  # the same laws of engines on the local one
    "tests/gpu_validation/adapters/test_flower.py::test_a_federation_gives_the_bits_and_bytes_of_a_plain_loop": "",
    "tests/gpu_validation/averaging/test_survival.py::test_survivors_go_on_whenever_a_rank_dies": r"outer",
    "tests/gpu_validation/studies/test_on_engine.py::test_the_command_runs_on_dask": "",
    "tests/gpu_validation/studies/test_on_engine.py::test_a_killed_process_loses_one_unit_at_most": "",  # accidents
    "tests/gpu_validation/adapters/test_flower.py::test_both_ends_with_flowers_own_messages": "",  # test_model_updates
    "tests/gpu_validation/studies/test_overlap.py::test_the_tiny_study_is_whole": "",  # the record, judged anew
    "tests/gpu_validation/test_killed_ranks.py::test_at_ten_moments_of_either_shot": r"Hook-0|Mean-1|MeanOfSums-1",
    "tests/test_public_scripts.py::test_a_patched_script_gives_the_bits_of_a_loop_by_hand": r"ddp_tut|gpt-comp",
    "tests/test_public_scripts.py::test_a_script_runs_without_a_patch": r"ddp_tutorial",
    "tests/bounds/pep/test_different_data.py::test_the_minimax_table_is_proved": "",  # two of its horizons are quick
    "tests/test_training_guides.py::test_ddp_script_learns_and_both_ranks_hold_the_same_network": "",  # the others stay
    "tests/test_release_guides.py::test_the_smoke_script_passes_on_gloo": "",  # test_torchrun: what it calls
    "tests/test_tiers.py::test_quick_and_rest_are_the_full_tier": "",  # test_tiers_divide_all_cases
    "tests/operators/test_precompile.py::test_the_command_ends_with_0": "",  # make setup calls it
    "tests/operators/compilation/test_stamp.py::test_no_stamp_depends_on_assertions": "",  # the other stamps stay
    "tests/docs/test_bits_for_layers.py::test_a_gradient_gives_its_record_again": "",  # layers of the note
    "tests/gpu_validation/studies/test_on_engine.py::test_a_study_moves_from_engine_to_engine": "",  # test_engines
    "tests/docs/test_pages.py::test_commands_of_the_guide_to_operators_judge_the_operator_of_the_page": "",  # test_cli
    "tests/test_framework_scripts.py::test_scripts_with_ddp_give_the_bits_of_the_plain_api": r"comm_hook",
}


# -- nightly ----------------------------------------------------------------------------------------------------
def is_nightly(nodeid: str) -> bool:
    """Whether the table moves a case to the nightly tier."""
    return any(nodeid.startswith(test) and not (kept and re.search(kept, nodeid)) for test, kept in NIGHTLY.items())


# -- quick ------------------------------------------------------------------------------------------------------
def durations() -> dict[str, float]:
    """Processor seconds of the slower cases."""
    return {
        f"{file}::{case}": seconds
        for file, cases in json.loads(DURATIONS.read_text()).items()
        for case, seconds in cases.items()
    }


def module_of(path: str) -> str:
    """The module of a file, relative to the repository."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def exported() -> dict[str, str]:
    """Name -> the module that defines it, of the packages that load their names when they are used."""
    found = {}
    for top in PACKAGES:
        for file in (ROOT / top).rglob("__init__.pyi"):
            package = module_of(file.parent.relative_to(ROOT).as_posix())
            lines = re.findall(r"^from \.([\w.]+) import (\w+) as", file.read_text(), re.MULTILINE)
            found |= {f"{package}.{name}": f"{package}.{module}" for module, name in lines}
    return found


@cache
def imports() -> dict[str, set[str]]:
    """Module or test file -> the modules of this repository that it imports anywhere."""
    import grimp

    graph = grimp.build_graph(*PACKAGES, include_external_packages=False, cache_dir=None)
    names = exported()
    found = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    for top in (*PACKAGES, "tests"):
        for file in (ROOT / top).rglob("*.py"):
            path = file.relative_to(ROOT).as_posix()
            targets = found.setdefault(path if top == "tests" else module_of(path), set())
            targets |= {names.get(each, each) for each in named_in(file.read_text())} & graph.modules
            if top == "tests":
                targets |= shared(file)
    for module, starts in FOUND.items():
        found[module] |= {name for name in graph.modules if name.startswith(starts) and name != module}
    return found


def named_in(text: str) -> set[str]:
    """The modules, and their names, that a file imports or uses as attributes of a module."""
    found = set()
    for source, listed in FROM.findall(text):
        found |= {source, *(f"{source}.{name}" for name in re.findall(r"\w+", listed))}
    for source, alias in ALIASED.findall(text):
        used = re.findall(rf"\b{re.escape(alias or source)}\.(\w+)", text)
        found |= {source, *(f"{source}.{name}" for name in used)}
    return found


def shared(file: Path) -> set[str]:
    """The files of the tests that a test file imports."""
    paths = set()
    for dots, module, listed in RELATIVE.findall(file.read_text()):
        folder = file.parents[len(dots) - 1] / module.replace(".", "/")
        paths |= {folder.with_suffix(".py"), *(folder / f"{name}.py" for name in re.findall(r"\w+", listed))}
    return {path.relative_to(ROOT).as_posix() for path in paths if path.is_file()}


def changed() -> set[str]:
    """Files that the last change touches; empty on a clone without history."""
    for base in ("origin/main", "HEAD~1"):
        merge = subprocess.run(
            ["git", "merge-base", base, "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if merge.returncode == 0 and (base == "HEAD~1" or merge.stdout.strip() != head()):
            names = ["git", "diff", "--name-only", merge.stdout.strip()]
            return set(subprocess.run(names, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
    return set()


def head() -> str:
    """The commit that is checked out; empty outside a repository."""
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip()


def distances(files: set[str], graph: dict[str, set[str]]) -> dict[str, int]:
    """Module or test file -> the number of imports between it and the nearest changed file."""
    importers = defaultdict(set)
    for module, targets in graph.items():
        for target in targets:
            importers[target].add(module)
    starts = [file if file in graph else module_of(file) for file in sorted(files) if file.endswith(".py")]
    found = dict.fromkeys(starts, 0)
    queue = deque(starts)
    while queue:
        module = queue.popleft()
        for importer in importers[module] - found.keys():
            found[importer] = found[module] + 1
            queue.append(importer)
    return found


def near_the_change(nodeids: list[str], seconds: dict[str, float]) -> set[str]:
    """The slower cases that the quick tier takes: the nearest to the change, within the budget."""
    files = changed()
    near = distances(files, imports()) if files else {}
    reached = sorted(
        (near[file], seconds[nodeid], nodeid) for nodeid in nodeids if (file := nodeid.partition("::")[0]) in near
    )
    kept, spent = set(), 0.0
    for _, cost, nodeid in reached:
        if spent + cost <= BUDGET_S:
            kept.add(nodeid)
            spent += cost
    return kept


# -- full -------------------------------------------------------------------------------------------------------
def drawn(nodeids: list[str], seconds: dict[str, float], seed: str) -> set[str]:
    """Of every test a sample of its cases that takes at most ``DRAWN_S``; one case at least."""
    cases = defaultdict(list)
    for nodeid in sorted(nodeids):
        cases[nodeid.partition("[")[0]].append(nodeid)
    kept = set()
    for test, those in cases.items():
        random.Random(f"{seed} {test}").shuffle(those)
        spent = list(accumulate(seconds[nodeid] for nodeid in those))
        kept |= {nodeid for nodeid, total in zip(those, spent, strict=True) if total <= DRAWN_S} or {those[0]}
    return kept


def selected(tier: str, marks: dict[str, str]) -> set[str]:
    """The cases of a tier, of all cases and their marks: "slow", "thorough" or none."""
    seconds = {nodeid: FAST_S / 2 for nodeid, mark in marks.items() if mark == "thorough"} | durations()
    site = {n for n, mark in marks.items() if mark == "slow" and n.startswith(SITE) and not is_nightly(n)}
    decide = {nodeid for nodeid, mark in marks.items() if mark != "slow"}
    slower = sorted(n for n in decide if marks[n] == "thorough" or seconds.get(n, 0.0) > FAST_S)
    quick = decide - set(slower) | near_the_change(slower, seconds)
    full = quick | drawn(slower, seconds, head()) | site
    return {"quick": quick, "rest": full - quick, "full": full, "nightly": marks.keys() - full}[tier]


def may_have_rest(path: Path) -> bool:
    """Whether a test file may have cases of the full tier that are not quick."""
    name = path.relative_to(ROOT).as_posix()
    if name.startswith(SITE) or name in json.loads(DURATIONS.read_text()):
        return True
    text = path.read_text() if path.exists() else ""
    return "mark.thorough" in text or "mark.every(" in text


# -- measuring --------------------------------------------------------------------------------------------------
def processor_seconds(root: int | None = None) -> float:
    """Processor time of a process (this one by default), of all below it, and of those that they have waited for."""
    below, used = defaultdict(list), {}
    for process in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()  # from "state" on: proc(5)
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        below[int(fields[1])].append(process)
        used[process] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, queue = 0.0, [root or os.getpid()]
    while queue:
        process = queue.pop()
        total += used.get(process, 0.0)
        queue += below[process]
    return total


class Clock:
    """Writes one line per case: node, processor seconds, seconds."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).open("a")  # noqa: SIM115  open as long as the session

    def start(self) -> None:
        """Begin a case."""
        self.before = processor_seconds(), time.monotonic()

    def lap(self, nodeid: str) -> None:
        """Write the line of the case that ends."""
        spent = round(processor_seconds() - self.before[0], 3), round(time.monotonic() - self.before[1], 2)
        self.file.write(json.dumps([nodeid, *spent]) + "\n")
        self.file.flush()


def clock() -> Clock | None:
    """A clock if ``CPU_OUT`` names a file."""
    return Clock(os.environ["CPU_OUT"]) if "CPU_OUT" in os.environ else None


def main(*paths: str) -> None:
    """Renew ``durations.json`` by the longest times of clocks; what they lack stays if its file does."""
    used: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for nodeid, seconds, passed in (json.loads(line) for path in paths for line in Path(path).read_text().splitlines()):
        file, _, case = nodeid.partition("::")  # more was used before, by a process that ended here
        used[file][case] = max(used[file][case], round(min(seconds, CORES * passed), 1))
    table = {file: cases for file, cases in json.loads(DURATIONS.read_text()).items() if (ROOT / file).exists()}
    table = {file: table.get(file, {}) | used.get(file, {}) for file in sorted(table.keys() | used)}
    text = {
        file: {case: seconds for case, seconds in sorted(cases.items()) if seconds > FAST_S}
        for file, cases in table.items()
    }
    DURATIONS.write_text(
        json.dumps({f: cases for f, cases in text.items() if cases}, indent=0, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
