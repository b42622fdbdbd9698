import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from gpu_validation.adapters.accelerated import LocalSGD
from gpu_validation.workloads.digits import digits
from operators import QSGD

torch.manual_seed(0)
accelerator = Accelerator(cpu=True)
images, labels = digits()
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = DataLoader(TensorDataset(images[:1280], labels[:1280]), batch_size=32)
model, optimizer, batches = accelerator.prepare(model, optimizer, batches)

with LocalSGD(accelerator=accelerator, model=model, local_sgd_steps=8, operator=QSGD(levels=16)) as local_sgd:
    for x, y in batches:
        accelerator.backward(cross_entropy(model(x), y))
        optimizer.step()
        optimizer.zero_grad()
        local_sgd.step()

sent = local_sgd.averaging.transport.payload_bytes
torch.save((accelerator.unwrap_model(model).state_dict(), sent), f"rank-{accelerator.process_index}.pt")
accelerator.end_training()
