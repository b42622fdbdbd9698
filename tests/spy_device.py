"""A device without hardware: its tensors are the CPU's, but nothing mixes with those of the CPU, as on CUDA.

It is registered for a whole process and cannot be taken back, so that tests use it in a process of their own.
"""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class OnSpy(torch.Tensor):
    """A tensor on the device; ``.numpy()`` of it is refused by torch itself."""

    @staticmethod
    def __new__(cls, plain):
        wrapper = torch.Tensor._make_wrapper_subclass(
            cls, plain.size(), dtype=plain.dtype, device="spy:0", strides=plain.stride()
        )
        wrapper.plain = plain
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} on the device outside of Spy()")

    def tolist(self):
        """A copy of a few numbers to the host."""
        Spy.active.to_host.append(self.plain.nbytes)
        return self.plain.tolist()


class Literals(TorchFunctionMode):
    """Makes ``torch.tensor(..., device="spy")`` of numbers, which torch does without asking the mode below."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.tensor and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return func(*args, **kwargs).to(device)
        return func(*args, **kwargs)


class Spy(TorchDispatchMode):
    """Makes the device work, and keeps the bytes of every copy of a vector between it and the CPU.

    Attributes
    ----------
    to_host, to_device : list of int, bytes
        Every copy of a tensor with a dimension.
    """

    active = None

    def __init__(self):
        super().__init__()
        if not hasattr(torch, "spy"):
            _setup_privateuseone_for_python_backend("spy")
        self.to_host, self.to_device, self.literals = [], [], Literals()

    def __enter__(self):
        Spy.active = self
        self.literals.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.literals.__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        there = [isinstance(tensor, OnSpy) for tensor in tensors]
        target = torch.device(kwargs["device"]).type if kwargs.get("device") is not None else None
        if func in COPIES:
            self._copied(func, tensors, target)
        elif any(there) and any(t.ndim and not spied for t, spied in zip(tensors, there, strict=True)):
            raise RuntimeError(f"{func} got tensors on two devices")
        plain, settings = tree_map(lambda leaf: leaf.plain if isinstance(leaf, OnSpy) else leaf, (args, kwargs))
        if target is not None:
            settings["device"] = torch.device("cpu")
        result = func(*plain, **settings)
        if func._schema.is_mutable and func._schema.name.endswith("_"):
            return args[0]
        stays = target == "spy" if target is not None else any(there)
        return tree_map(lambda leaf: OnSpy(leaf) if stays and isinstance(leaf, torch.Tensor) else leaf, result)

    def _copied(self, func, tensors, target):
        source = tensors[-1]
        to_spy = isinstance(tensors[0], OnSpy) if func == COPIES[1] else target == "spy"
        to_host = not to_spy and (func == COPIES[1] or target is not None)
        if source.ndim and to_spy and not isinstance(source, OnSpy):
            self.to_device.append(source.nbytes)
        if source.ndim and to_host and isinstance(source, OnSpy):
            self.to_host.append(source.plain.nbytes)
