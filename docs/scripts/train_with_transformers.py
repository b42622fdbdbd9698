import torch
from torch.nn.functional import cross_entropy
from transformers import Trainer, TrainingArguments

from gpu_validation.adapters.hugging_face import AveragingCallback
from gpu_validation.workloads.digits import digits
from operators import QSGD


class Network(torch.nn.Sequential):
    def forward(self, x, labels):
        logits = super().forward(x)
        return {"loss": cross_entropy(logits, labels), "logits": logits}


torch.manual_seed(0)
images, labels = digits()
dataset = [{"x": x, "labels": y} for x, y in zip(images[:1280], labels[:1280], strict=True)]
model = Network(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
arguments = TrainingArguments("out", use_cpu=True, num_train_epochs=2, per_device_train_batch_size=32, report_to=[])

trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
callback = AveragingCallback(trainer, schedule=8, operator=QSGD(levels=16))
trainer.add_callback(callback)
trainer.train()

sent = callback.averaging.transport.payload_bytes
torch.save((model.state_dict(), sent), f"rank-{arguments.process_index}.pt")
torch.distributed.destroy_process_group()
