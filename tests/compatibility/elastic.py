"""``torchrun --max-restarts=1 elastic.py averaging|hook``: train in the current folder; rank 1 dies once."""

import os
import signal
import sys

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import Checkpoint, PeriodicAveraging, join_torchrun
from operators import ErrorFeedback, TopK
from operators.ddp import register


def train(way, folder, death=None):
    """The first step of this attempt, and the parameters at the end."""
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    method = ErrorFeedback(TopK(fraction=0.25))
    if way == "averaging":
        averaging = PeriodicAveraging(network, optimizer, schedule=4, operator=method)
        model, parts = network, {"averaging": averaging}
    else:
        model = DistributedDataParallel(network)
        parts = {"hook": register(model, method, scope="layer")}
    draw = torch.Generator().manual_seed(rank)
    checkpoint = Checkpoint(folder, model=network, optimizer=optimizer, draw=draw, **parts)
    start = checkpoint.load()
    for step in range(start, 15):
        if (rank, step) == (1, death):
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.randn(8, 6, generator=draw)
        optimizer.zero_grad()
        loss = cross_entropy(model(x), x[:, :3].argmax(1))
        loss.backward()
        optimizer.step()
        if way == "averaging":
            averaging.step(loss)
        if (step + 1) % 5 == 0:
            checkpoint.save(step + 1)
    if way == "averaging":
        averaging.average()
    return start, torch.cat([p.detach().flatten() for p in network.parameters()])


if __name__ == "__main__":
    attempt = join_torchrun(timeout_s=30)
    start, parameters = train(sys.argv[1], "checkpoints", 7 if attempt == 0 else None)
    torch.save((attempt, start, parameters), f"rank-{torch.distributed.get_rank()}.pt")
    torch.distributed.destroy_process_group()
