"""Three first hours from a built wheel in a clean environment: what each reader types, in an empty folder.

A newcomer installs, asks for a limit and looks at a first picture; a student checks a function, compares it at equal
bits, draws the figure and takes the reference; an engineer plans for a cluster and trains a few rounds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LONGEST_S = 500  # of one command


@dataclass(frozen=True)
class Step:
    """One command, and what must come of it.

    Parameters
    ----------
    command : str
        As it is typed, but for the wheel's name, WHEEL.
    words : str
        That its output holds.
    leaves : tuple of str
        Files that exist afterwards and are not empty.
    """

    command: str
    words: str = ""
    leaves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Journey:
    """What a reader types from an empty folder on.

    Parameters
    ----------
    steps : tuple of Step
        In their order.
    files : dict of str to str
        That the reader has written, by name.
    """

    steps: tuple[Step, ...]
    files: dict[str, str] = field(default_factory=dict)


MINE = """\
def larger_half(x):
    kept = x.abs() >= x.abs().median()
    return x * kept


larger_half.bits = lambda d: d + 16 * d + 32
"""
TRAIN = """\
import torch
import torch.distributed as dist

from gpu_validation import PeriodicAveraging
from operators import QSGD, Key

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(100, 1)
draw = torch.Generator().manual_seed(dist.get_rank())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
averaging = PeriodicAveraging(model, optimizer, schedule=8, operator=QSGD(levels=16), key=Key(0))
for step in range(64):
    x = torch.randn(16, 100, generator=draw)
    optimizer.zero_grad()
    loss = (model(x) - x[:, :1]).square().mean()
    loss.backward()
    optimizer.step()
    averaging.step(loss)
averaging.average()
if dist.get_rank() == 0:
    print(f"loss {float(loss):.3f}, {averaging.transport.payload_bytes} bytes sent")
dist.destroy_process_group()
"""
GRADIENT = "import numpy; numpy.save('gradient.npy', numpy.random.default_rng(0).standard_t(4, 20000))"
JOURNEYS = {
    "newcomer": Journey(
        (
            Step("python -m venv env"),
            Step("pip install WHEEL"),
            Step("ratedist bits --d 1e6 --alpha 0.1", "1,660,964.05 bits"),
            Step("pip install WHEEL[validate]"),
            Step("ratedist run smoke --seed 0", "summary.svg", ("results/smoke/summary.svg",)),
        )
    ),
    "student": Journey(
        (
            Step("python -m venv env"),
            Step("pip install WHEEL[laws,validate]"),
            Step(
                "ratedist check mine:larger_half --alpha 0.5 --budget quick --seed 1",
                "larger_half, claimed contractive with alpha = 0.5: ok",
            ),
            Step(f'python -c "{GRADIENT}"', leaves=("gradient.npy",)),
            Step(
                "ratedist compare mine:larger_half gradient.npy --bits 1 2 --out figure.pdf",
                "larger_half",
                ("figure.pdf",),
            ),
            Step("ratedist cite worst_case_bits", "@"),
        ),
        {"mine.py": MINE},
    ),
    "engineer": Journey(
        (
            Step("python -m venv env"),
            Step("pip install WHEEL[validate]"),
            Step(
                "ratedist plan --d 1.3B --workers 64 --nodes 8 --inside nvlink4,3e-6 --bandwidth_bit_per_s 1e11 "
                "--target 0.1 --codec free",
                "averaging every step",
            ),
            Step(
                "ratedist tau --workers 64 --step_s 0.08 --bits 8e8 --L 1 --sigma2 1 --eta 0.01 --gap 1 --time_s 600",
                "Average every",
            ),
            Step("torchrun --nproc-per-node=2 train.py", "bytes sent"),
        ),
        {"train.py": TRAIN},
    ),
}


def built_wheel(folder: Path) -> Path:
    """The wheel of this source, built in a folder."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=LONGEST_S)
    (wheel,) = folder.glob("*.whl")
    return wheel


def travel(journey: Journey, wheel: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Carry out the steps in an empty folder, one record each; AssertionError where one does not do its part."""
    for name, text in journey.files.items():
        (folder / name).write_text(text)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = os.pathsep.join([str(folder / "env/bin"), str(Path(sys.base_prefix, "bin")), "/usr/bin:/bin"])
    environment["PIP_CONSTRAINT"] = str(ROOT / "constraints.txt")
    for step in journey.steps:
        began = time.monotonic()
        done = subprocess.run(
            step.command.replace("WHEEL", str(wheel)),
            shell=True,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"{step.command} ended with status {done.returncode}: {said[-2000:]}"
        assert step.words in said, f"{step.command} did not say {step.words!r}: {said[-2000:]}"
        for name in step.leaves:
            assert (folder / name).stat().st_size > 0, f"{step.command} left {name} empty"
        yield {"command": step.command.replace("WHEEL", "ratedist"), "seconds": round(time.monotonic() - began, 2)}
