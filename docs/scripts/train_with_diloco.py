import torch
from torch.nn.functional import cross_entropy

from gpu_validation import Nesterov, join_torchrun
from gpu_validation.adapters.diloco import DiLoCo
from gpu_validation.workloads.digits import digits
from operators import QSGD

join_torchrun(timeout_s=30)  # in place of dist.init_process_group
rank = torch.distributed.get_rank()
torch.manual_seed(0)
images, labels = digits()
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

draw = torch.Generator().manual_seed(rank)
with DiLoCo(model, optimizer, outer=Nesterov(0.7, 0.5), sync_every=8, operator=QSGD(levels=16)) as diloco:
    for _ in range(36):
        batch = torch.randint(1280, (32,), generator=draw)
        optimizer.zero_grad()
        cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()

torch.save((model.state_dict(), diloco.averaging.transport.payload_bytes), f"rank-{rank}.pt")
torch.distributed.destroy_process_group()
