import torch
from flwr import app, clientapp, serverapp

from gpu_validation.adapters.flower import CompressedFedAvg, CompressedUpdates, trainable_parameters
from gpu_validation.workloads.digits import digits
from operators import ErrorFeedback, TopK

client = clientapp.ClientApp()
server = serverapp.ServerApp()
model, method = torch.nn.Linear(64, 10), ErrorFeedback(TopK(fraction=0.05))


@client.train(mods=[CompressedUpdates(method, parameters=trainable_parameters(model))])
def train(message, context):
    images, labels = (values[context.node_config["partition-id"] :: 2] for values in digits())  # its own half
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(8):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    arrays, metrics = app.ArrayRecord(model.state_dict()), app.MetricRecord({"num-examples": len(labels)})
    return app.Message(app.RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@server.main()
def main(grid, context):
    strategy = CompressedFedAvg(method, fraction_evaluate=0.0)
    trained = strategy.start(grid, app.ArrayRecord({name: 0 * p for name, p in model.state_dict().items()}))
    torch.save((trained.arrays.to_torch_state_dict(), strategy.uplink_bytes, strategy.downlink_bytes), "federation.pt")
