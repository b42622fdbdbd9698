import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import join_torchrun
from gpu_validation.workloads.digits import digits
from operators import ErrorFeedback, TopK
from operators.ddp import register

join_torchrun(timeout_s=30)  # in place of dist.init_process_group
rank = torch.distributed.get_rank()
torch.manual_seed(0)
images, labels = digits()
network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
model = DistributedDataParallel(network)
hook = register(model, ErrorFeedback(TopK(fraction=0.05)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

draw = torch.Generator().manual_seed(rank)
for _ in range(36):
    batch = torch.randint(1280, (32,), generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(images[batch]), labels[batch]).backward()
    optimizer.step()

torch.save((network.state_dict(), hook.payload_bytes), f"rank-{rank}.pt")
torch.distributed.destroy_process_group()
