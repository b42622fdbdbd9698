"""The line of a training script that runs a choice of a plan."""

from __future__ import annotations

from .run import Rhythm

MERGE = "Corrected"  # adds the steps in flight to the new common model, as predictions assume


def script_line(
    operator: str, exchange: str, rhythm: Rhythm, *, fed_back: bool = False, workers_per_node: int = 1
) -> str:
    """Return the Python call that averages as a choice says.

    Parameters
    ----------
    operator : str
        The specification of what workers send; "identity" or "binary32" without compression.
    exchange : str
        "sum", "gather", "two_shot", "node_gather" or "node_two_shot".
    rhythm : Rhythm
        When the workers average.
    fed_back : bool, optional
        Whether messages carry error feedback.
    workers_per_node : int, optional
        Workers that sum exactly, where ``exchange`` begins with "node_".

    Notes
    -----
    Training that averages every step and waits is that of DistributedDataParallel, so that an adaptive optimizer gets
    the mean gradient; all else is PeriodicAveraging.  ``model``, ``optimizer`` and ``ddp_model`` are the caller's.
    Casts, which are summed on the way, take the two shots that compute the same.
    """
    is_dense = operator in ("identity", "binary32")
    in_two, in_nodes = exchange in ("sum", "two_shot", "node_two_shot"), exchange.startswith("node_")
    if rhythm.tau == 1 and not rhythm.in_flight:
        if is_dense:
            return "DistributedDataParallel(model)"
        arguments = ["ddp_model", _quoted(operator)]
        arguments += ["feedback=ErrorFeedback"] * fed_back + ['exchange="two_shot"'] * in_two
        return f"register({', '.join(arguments + [f'ranks_per_node={workers_per_node}'] * in_nodes)})"
    arguments = ["model", "optimizer", f"schedule={rhythm.tau}"]
    if not is_dense:
        parsed = f"parse({_quoted(operator)})"
        parsed = f"ErrorFeedback({parsed})" if fed_back else parsed
        arguments.append(f"exchange=TwoShot({parsed})" if in_two else f"operator={parsed}")
        arguments += [f"membership=Nodes({workers_per_node})"] * in_nodes
    if rhythm.in_flight:
        fragments = f", fragments={rhythm.parts}" * (rhythm.parts > 1)
        arguments.append(f"merge={MERGE}(delay={rhythm.in_flight}{fragments})")
    return f"PeriodicAveraging({', '.join(arguments)})"


def _quoted(operator: str) -> str:
    """Return a specification in double quotes."""
    return f'"{operator}"'
