"""Train a small convolutional network in one process, in the form of an example of PyTorch.

Written anew with the functions and calls of ``mnist/main.py`` in pytorch/examples, for the CPU; the images are those of
scikit-learn, 8 x 8 pixels, which need no download.  ``python mnist.py --epochs 3 --save-model``
"""

import argparse

import torch
from torch import nn, optim
from torch.nn.functional import log_softmax, max_pool2d, nll_loss, relu
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Subset, TensorDataset

from gpu_validation.workloads.digits import digits


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3)
        self.conv2 = nn.Conv2d(16, 32, 3)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(128, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = relu(self.conv2(relu(self.conv1(x))))
        x = self.dropout1(max_pool2d(x, 2)).flatten(1)
        x = self.dropout2(relu(self.fc1(x)))
        return log_softmax(self.fc2(x), dim=1)


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for number, (images, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = nll_loss(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if number % args.log_interval == 0:
            print(f"epoch {epoch}, batch {number} of {len(loader)}: loss {loss.item():.4f}")


def test(model, device, loader):
    model.eval()
    loss, right, size = 0.0, 0, len(loader.dataset)
    with torch.no_grad():
        for images, labels in loader:
            scores = model(images.to(device))
            loss += nll_loss(scores, labels.to(device), reduction="sum").item()
            right += int((scores.argmax(1) == labels.to(device)).sum())
    print(f"test: mean loss {loss / size:.4f}, {right} of {size} right")


def load_digits():
    images, labels = digits()
    whole = TensorDataset((images.view(-1, 1, 8, 8) - 0.3) / 0.38, labels)
    return Subset(whole, range(1400)), Subset(whole, range(1400, len(whole)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--test-batch-size", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--save-model", action="store_true")
    args = parser.parse_args()

    device = torch.device("cpu")
    torch.manual_seed(args.seed)
    train_set, test_set = load_digits()
    train_settings = {"batch_size": args.batch_size}
    train_loader = DataLoader(train_set, **train_settings)
    test_loader = DataLoader(test_set, batch_size=args.test_batch_size)

    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    decay = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        decay.step()

    if args.save_model:
        torch.save(model.state_dict(), "mnist.pt")


if __name__ == "__main__":
    main()
