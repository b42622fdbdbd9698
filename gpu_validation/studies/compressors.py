"""Every compressor on convex problems with known minima: suboptimality against bits, and the cheapest compression.

After the figures of Albasyoni et al. (2020, arXiv:2010.03246), on data that come with scikit-learn: full gradients of
four workers, so that compression is the only randomness, and the step sizes of the theorems.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from bounds.claims import Unbiased
from bounds.total_communication import SMALLEST, total_bits
from operators import QSGD, Operator, RandomisedSparseDithering, RandomK, all_operators, specification

from ..judging.comparisons import exact_row, mean_row, out_of_scope, unjudged_row
from ..judging.plotting import FAMILIES as FAMILIES_OF_OPERATORS
from ..judging.plotting import LINES, LINES_A_PANEL, MARKS, PALETTE, TITLE_PT, canvas, chart, colour, family
from ..workloads import Bundled, Iid, LogisticRegression, Ridge
from ..workloads.linear import LinearModel
from .compressed_descent import METHODS, Diana, descend, landmarks, methods_for
from .study import Comparison, Figure, Record, Study

WORKERS = 4
ROUNDING = 1e-5  # of a potential or a squared gradient: they rest on vectors that travel as binary32
PROBLEMS: dict[str, LinearModel] = {
    "ridge, diabetes": Ridge(batch=None, decay=0.1, split=Iid(WORKERS)),
    "logistic, breast cancer": LogisticRegression(
        source=Bundled("breast_cancer"), batch=None, decay=0.1, split=Iid(WORKERS)
    ),
    "softmax, digits": LogisticRegression(batch=None, decay=0.1, split=Iid(WORKERS)),
}
FAMILIES: dict[str, tuple[Operator, ...]] = {
    "randomk": tuple(RandomK(fraction=f) for f in (1.0, 0.5, 0.25, 0.1, 0.04)),
    "qsgd": tuple(QSGD(levels=s) for s in (1, 4, 16, 64)),
    "randomised_sparse_dithering": tuple(RandomisedSparseDithering(omega=w) for w in (0.1, 1.0, 4.0, 16.0)),
}
LONG_NUMBER = re.compile(r"\d+\.\d{4,}")


@dataclass(frozen=True)
class Compressors(Study):
    """``steps`` steps of every method that covers an operator, over ``seeds``; one seed where nothing is random.

    Total communication: DIANA until its potential is ``epsilon`` of its start, over the first ``runs`` seeds.
    """

    steps: int = 100
    seeds: tuple[int, ...] = tuple(range(8))
    every: int = 5
    epsilon: float = 1e-2
    runs: int = 3
    problems: tuple[str, ...] = tuple(PROBLEMS)

    name = "compressors"
    description = "every operator on ridge and logistic regression: suboptimality against bits, total communication"
    minutes = 8

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield for each problem the methods with their operators, then the operators of each family."""
        for problem in self.problems:
            yield from (("path", problem, *pair) for pair in _pairs(landmarks(PROBLEMS[problem]).d))
            yield from (("total", problem, name, specification(o)) for name, chosen in FAMILIES.items() for o in chosen)

    def measure_path(self, problem: str, method: str, operator: str) -> Record:
        """Descend by a method with an operator for a number of steps."""
        return {**self._path(PROBLEMS[problem], method, operators_by_name()[operator]), **_data(problem)}

    def measure_total(self, problem: str, family: str, operator: str) -> Record:
        """Descend by DIANA with an operator of a family until it is near."""
        return {**self._total(PROBLEMS[problem], operators_by_name()[operator]), **_data(problem)}

    def _path(self, workload: LinearModel, name: str, operator: Operator) -> Record:
        marks, method = landmarks(workload), METHODS[name]
        level = method.level(operator.claim(marks.d))
        assert level is not None  # by the choice of units
        seeds = self.seeds[:1] if operator.randomness == "none" else self.seeds
        paths = [descend(workload, method, operator, steps=self.steps, seed=seed, every=self.every) for seed in seeds]
        return {
            **_numbers(workload),
            "level": level,
            "eta": method.eta(marks, level),
            "first_potential": paths[0].potential[0],
            "potential": [path.potential[-1] for path in paths],
            "gradient2": [path.gradient2[-1] for path in paths],
            "bits": [b / marks.m for b in paths[0].bits],
            "gaps": np.mean([path.gap for path in paths], axis=0).tolist(),
        }

    def _total(self, workload: LinearModel, operator: Operator) -> Record:
        marks = landmarks(workload)
        claim = operator.claim(marks.d)
        steps = math.ceil(self._predicted(claim, 1.0, _numbers(workload), self.chance).steps)
        every = max(1, steps // 1000)
        goal = self.epsilon * descend(workload, Diana(), operator, steps=0, seed=0).potential[0]
        paths = [
            descend(workload, Diana(), operator, steps=steps, seed=seed, every=every, until=lambda p: p <= goal)
            for seed in self.seeds[: self.runs]
        ]
        return {
            **_numbers(workload),
            "omega": getattr(claim, "omega", 0.0),
            "every": every,
            "arrived": [path.potential[-1] <= goal for path in paths],
            "steps": [path.step[-1] for path in paths],
            "bits": [path.bits[-1] / marks.m for path in paths],
        }

    @property
    def chance(self) -> float:
        """Of a false alarm in one row."""
        return self.false_alarm / (200 * len(self.problems))  # fewer than 200 judged rows a problem

    def _predicted(self, claim: Any, bits: float, at: Record, chance: float = 1.0) -> Any:
        """Return steps and bits of one worker after which E potential is at most epsilon times ``chance``
        of its start.
        """
        kappa = at["L"] / at["mu"]
        return total_bits("diana", claim, bits, m=at["m"], kappa=kappa, epsilon=self.epsilon * chance)

    # -- judgement ---------------------------------------------------------------------------------------
    def judge_path(self, record: Record, problem: str, method: str, operator: str) -> list[Comparison]:
        """Judge the potential of every run by its theorem."""
        return [self._path_row(record, problem, method, operator)]

    def _path_row(self, record: Record, problem: str, name: str, text: str) -> Comparison:
        from bounds import theorems

        level = max(record["level"], SMALLEST)
        about: dict[str, Any] = {"operator": text, "workload": problem}
        if name == "plain":
            values, reason = record["gaps"][-1:], "the operator makes no claim, so that no theorem covers it"
            return unjudged_row(values, reason, quantity="suboptimality, plain", **about)
        if name == "dcgd":
            arguments = {k: record[k] for k in ("R0", "eta", "mu", "L", "m", "sigma2_opt")}
            bound = theorems.dcgd(omega=level, K=self.steps, **arguments)
            return self._row(record["potential"], bound, quantity="|x - x*|^2, dcgd", theorem="dcgd", **about)
        if name == "diana":
            kappa = record["L"] / record["mu"]
            fold = theorems.diana(kappa=kappa, omega=level, m=record["m"], epsilon=1 / math.e)  # steps of one e-fold
            bound = record["first_potential"] * math.exp(-self.steps / fold)
            return self._row(record["potential"], bound, quantity="potential, diana", theorem="diana", **about)
        unit = theorems.ef21(L=record["L"], gap=record["gap"], alpha=level, epsilon=1.0)  # steps times epsilon
        about |= {"quantity": "squared gradient norm, average over steps, ef21", "theorem": "ef21"}
        return self._row(record["gradient2"], unit / (self.steps + 1), **about)

    def _row(self, values: list[float], bound: float, **about: Any) -> Comparison:
        bound = float(bound)
        if len(values) == 1:
            return exact_row(values[0], bound, values[0] <= bound * (1 + ROUNDING), "upper", **about)
        return mean_row(values, bound * (1 + ROUNDING), "upper", level=self.chance, **about)

    def judge_total(self, record: Record, problem: str, family: str, operator: str) -> list[Comparison]:
        """Judge the steps to the accuracy by Markov's inequality."""
        claim = Unbiased(record["omega"])
        about: dict[str, Any] = {"operator": operator, "workload": problem, "theorem": "diana"}
        each = self._predicted(claim, 1.0, record, self.chance / len(record["steps"])).steps
        slowest = max(record["steps"]) - record["every"] + 1  # it was still short one recording before
        late = not all(record["arrived"]) or slowest > each
        quantity = f"steps until the potential is {self.epsilon:g} of its start, slowest run, by Markov's inequality"
        ends, n = (slowest, max(record["steps"])), len(record["steps"])
        certain = exact_row(slowest, float(each), not late, "upper", interval=ends, n=n, quantity=quantity, **about)
        per_step = float(np.mean(np.array(record["bits"]) / np.maximum(1, record["steps"])))
        predicted = self._predicted(claim, per_step, record).bits
        reason = "the theorem bounds an expectation after so many steps, not when a run gets there"
        about |= {"quantity": "bits of a worker", "unit": "bit"}
        bits = mean_row(record["bits"], float(predicted), "upper", level=self.chance, **about)
        return [certain, out_of_scope(bits, reason)]

    # -- drawings ----------------------------------------------------------------------------------------
    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return suboptimality against bits, one figure a problem, and total communication against omega."""
        paths, drawn = self.table(records, "path"), []
        if paths:
            drawn.append(
                Figure(
                    lambda: _draw_dots(paths),
                    "Measured: codec bits of one worker until F - F* is a hundredth of its start, mean of the runs, "
                    "full gradients of four workers. Colours are families of operators, marks methods with the step "
                    f"sizes of their theorems. No mark: not reached within {self.steps} steps, or not covered.",
                )
            )
        totals = self.table(records, "total")
        if totals:
            caption = (
                f"Bits of one worker until DIANA's potential is {self.epsilon:g} of its start. Marks: measured, mean "
                "of the runs. Lines: predicted by the theorem from the measured bits of a step."
            )
            drawn.append(Figure(lambda: self._draw_totals(totals), caption))
        if paths:
            caption = (
                "Measured: suboptimality F - F* against codec bits of one worker, mean of the runs: the operators of "
                f"the {LINES_A_PANEL} families that need the fewest bits, the best one of each."
            )
            drawn.append(Figure(lambda: _draw_paths(paths), caption, folded="The curves behind the marks"))
        return drawn

    def _draw_totals(self, records: Sequence[tuple[Any, Record]]) -> Any:
        def draw(ax: Any, problem: str) -> None:
            for i, kind in enumerate(FAMILIES):
                totals = [r for unit, r in records if (unit.problem, unit.family) == (problem, kind)]
                totals.sort(key=lambda r: r["omega"])
                omegas = [max(r["omega"], 1e-2) for r in totals]
                steps = [max(1.0, float(np.mean(r["steps"]))) for r in totals]
                bits = [float(np.mean(r["bits"])) for r in totals]
                predicted = [
                    self._predicted(Unbiased(r["omega"]), b / s, r).bits
                    for r, b, s in zip(totals, bits, steps, strict=True)
                ]
                ax.plot(omegas, predicted, LINES[i], color=colour(kind))
                ax.plot(omegas, bits, MARKS[i], color=colour(kind), label=kind)

        problems, labels = list(dict.fromkeys(unit.problem for unit, _ in records)), "omega (at least .01)"
        return chart(problems, draw, height=3.6, x=labels, y="bits of one worker", logs="xy")


def _data(problem: str) -> Record:
    data = PROBLEMS[problem].description()
    return {"data": data.name, "sha256": data.sha256, "synthetic": data.synthetic}


def _catalogue() -> list[Operator]:
    """Return the first example of every operator."""
    return [kind.examples()[0] for kind in all_operators().values()]


def operators_by_name() -> dict[str, Operator]:
    """Return all operators of the study by their specification."""
    return {specification(o): o for o in (*_catalogue(), *(o for family in FAMILIES.values() for o in family))}


def _pairs(d: int) -> Iterator[tuple[str, str]]:
    """Return (method, operator) for every operator of the catalogue and the methods that its claim at d allows."""
    for operator in _catalogue():
        for method in methods_for(operator.claim(d)):
            yield method.name, specification(operator)


def _numbers(workload: LinearModel) -> Record:
    marks = landmarks(workload)
    return {name: getattr(marks, name) for name in ("L", "mu", "m", "d", "R0", "gap", "sigma2_opt")}


def _draw_dots(paths: Sequence[tuple[Any, Record]]) -> Any:
    """Draw a panel a problem and a line an operator, those of the fewest bits on top."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import NullFormatter

    needed = {(u.problem, u.operator, u.method): _bits_needed(r)[0] for u, r in paths}
    problems, methods = (list(dict.fromkeys(getattr(u, name) for u, _ in paths)) for name in ("problem", "method"))
    operators = sorted(
        dict.fromkeys(u.operator for u, _ in paths), key=lambda o: -min(n for k, n in needed.items() if k[1] == o)
    )
    operators = [o for o in operators if any(np.isfinite(n) for k, n in needed.items() if k[1] == o)]
    figure, axes = canvas(1, len(problems), height=1.6 + 0.2 * len(operators))
    for ax, problem in zip(axes[0], problems, strict=True):
        for mark, method in zip(MARKS, methods, strict=False):
            for place, operator in enumerate(operators):
                bits = needed.get((problem, operator, method), np.inf)
                ax.plot([bits], [place], mark, color=colour(operator), markersize=5)
        ax.set(xscale="log", xlabel="bits to 1 % of the start", ylim=(-1, len(operators)))
        ax.set_title(problem, fontsize=10)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_yticks(range(len(operators)), [_name(o) for o in operators] if ax is axes[0, 0] else [])
    used = dict.fromkeys(family(operator) for operator in operators[::-1])
    handles = [Line2D([], [], color=PALETTE[list(FAMILIES_OF_OPERATORS).index(f)], linewidth=4, label=f) for f in used]
    marks = zip(MARKS, methods, strict=False)
    handles += [Line2D([], [], color="#444444", marker=m, linestyle="none", label=w) for m, w in marks]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    best, plain = min(n for n in needed.values()), [n for (_, o, _), n in needed.items() if o == "identity"]
    if plain and np.isfinite(best):
        ratios = [_least(needed, p, "identity") / _least(needed, p) for p in problems if _least(needed, p, "identity")]
        few, many = min(ratios), max(ratios)
        figure.suptitle(
            f"The best compressor needs {few:.1f} to {many:.1f} times fewer bits than binary32", fontsize=TITLE_PT
        )
    return figure


def _least(needed: dict[tuple[str, str, str], float], problem: str, operator: str = "") -> float:
    """Return the fewest bits on a problem, of one operator or of all."""
    return min((n for (p, o, _), n in needed.items() if p == problem and operator in ("", o)), default=np.inf)


def _name(operator: str) -> str:
    """Return an operator with short numbers, without the settings of the operators that it combines."""
    name, _, settings = operator.partition(":")
    return (
        name
        if "(" in settings
        else LONG_NUMBER.sub(lambda found: f"{float(found[0]):.3g}", f"{name} {settings}").strip()
    )


def _draw_paths(paths: Sequence[tuple[Any, Record]]) -> Any:
    """Draw a row of panels a problem, a column a method."""
    from matplotlib.ticker import NullFormatter

    def draw(ax: Any, panel: tuple[str, str]) -> None:
        best: dict[str, tuple[str, Record]] = {}
        of_panel = [(u.operator, r) for u, r in paths if (u.problem, u.method) == panel]
        for operator, record in sorted(of_panel, key=lambda path: _bits_needed(path[1])):
            best.setdefault(family(operator), (operator, record))
        for operator, record in list(best.values())[:LINES_A_PANEL]:
            line = LINES[list(FAMILIES_OF_OPERATORS).index(family(operator)) % len(LINES)]
            ax.plot(*np.transpose(_sent(record)), line, color=colour(operator), label=family(operator))
        ax.set(xscale="log", yscale="log", xlabel="bits of one worker" if panel[0] == problems[-1] else "")
        ax.title.set_fontsize(9)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())

    problems, methods = (list(dict.fromkeys(getattr(u, name) for u, _ in paths)) for name in ("problem", "method"))
    grid = list(product(problems, methods))
    return chart(grid, draw, columns=len(methods), height=2.6, title="\n".join, y="F - F*")


def _sent(record: Record) -> list[tuple[float, float]]:
    """Return (bits of one worker, F - F*) of a path."""
    return [(bits, max(gap, 1e-16)) for bits, gap in zip(record["bits"], record["gaps"], strict=True) if bits]


def _bits_needed(record: Record) -> tuple[float, float]:
    """Return the bits until a hundredth of the first F - F* (inf: never), and what is left at the end."""
    path = _sent(record)
    return next((bits for bits, gap in path if gap <= path[0][1] / 100), np.inf), path[-1][1]


PRESET = Compressors()
