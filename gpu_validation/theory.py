"""What theory says about a record: the bound that judges it, and the numbers that it predicts."""

from __future__ import annotations

from bounds import Bound

from .records import Declared, Timing, Training


def limit_for(declared: Declared) -> tuple[Bound, str]:
    """The rate-distortion limit on Gaussian input for a class of operators, and its distortion's keyword."""
    from bounds import limits

    if declared.kind == "Unbiased":
        return limits.gaussian_unbiased_bits, "omega"
    return limits.gaussian_bits, "alpha"


def theorem_for(declared: Declared) -> tuple[Bound | None, dict[str, float]]:
    """The convergence theorem that covers an operator with its own constants, or None."""
    from bounds import theorems

    if declared.constant == 0:
        return theorems.pasgd_iterations, {}
    if declared.kind == "Unbiased" and declared.constant is not None:
        return theorems.pasgd_compressed, {"omega": declared.constant}
    return None, {}


def predicted_seconds(timing: Timing, tau: int, processes: int) -> float:
    """Seconds per iteration by the runtime model: the slowest rank's mean over tau measured steps, and D / tau."""
    from bounds.runtime import Empirical, RuntimeModel

    model = RuntimeModel(step=Empirical(timing.step_s), delay_s=timing.delay_s.mean, m=processes)
    return float(model.seconds_per_iteration(tau=tau))


def exact_law(record: Training) -> tuple[str, float] | None:
    """The name and the value of the closed form of the averaged squared gradient norm.

    None where there is none: for other workloads than the diagonal quadratics, and for lossy operators.
    """
    from bounds.dynamics import additive, multiplicative

    from .workloads import MultiplicativeQuadratic, Quadratic

    if record.compression.declared.constant != 0:
        return None
    p, m, K = record.parameters, record.processes, record.steps
    if record.workload not in (Quadratic.name, MultiplicativeQuadratic.name):
        return None
    copies = int(p.get("copies", 1))
    problem = Quadratic(d=int(p["d"]), smallest=p["smallest"], noise=p["noise"], copies=copies).problem
    if record.workload == Quadratic.name:
        value = additive.mean_squared_gradient(problem, eta=p["eta"], m=m, K=K)
        return "exact dynamics with additive noise", float(value)
    value = multiplicative.mean_squared_gradient(
        problem, eta=p["eta"], m=m, tau=record.tau, rounds=K // record.tau, noise_growth=p["noise_growth"]
    )
    return "exact dynamics with multiplicative noise", float(value)
