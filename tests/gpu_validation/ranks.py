"""Work in real processes, and what it returns in every one of them."""

import torch

from gpu_validation.processes.launch import run_ranks


def in_ranks(work, processes, hang_timeout_s=60):
    """What ``work(place)`` returns in every rank, in rank order; tensors come as arrays."""
    reports = run_ranks(
        lambda place, emit: emit((place.rank, plain(work(place)))), processes=processes, hang_timeout_s=hang_timeout_s
    )
    return [value for _, value in sorted(reports, key=lambda pair: pair[0])]


def plain(value):
    """Tensors, also within tuples, lists and dictionaries, as arrays; float16 formats widened."""
    if isinstance(value, torch.Tensor):
        return (value.float() if value.dtype in (torch.bfloat16, torch.float16) else value).detach().numpy().copy()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(part) for part in value)
    return value
