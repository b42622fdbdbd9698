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


def exact_quadratic(record: Training) -> float:
    """The averaged squared gradient norm of the quadratic workload, in closed form."""
    from bounds.dynamics import additive

    from .workloads import Quadratic

    p = record.parameters
    workload = Quadratic(
        d=int(p["d"]), smallest=p["smallest"], noise=p["noise"], eta=p["eta"], copies=int(p.get("copies", 1))
    )
    value = additive.mean_squared_gradient(workload.problem, eta=workload.eta, m=record.processes, K=record.steps)
    return float(value)
