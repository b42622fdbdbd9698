"""The forms of functions that compress: plain, in pairs, of JAX, of Hivemind, and DDP communication hooks."""

from __future__ import annotations

import copy
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from threading import Thread
from time import monotonic
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.distributed as dist

# What an adapted compressor is to the kit: a function from a 1-d array to a 1-d array.


class Form(ABC):
    """A compressor of another project as a function x -> x_hat.

    Attributes
    ----------
    dtype
        Of the tensors that the compressor is given.
    __name__ : str
        What a report calls it.
    """

    dtype = torch.float32
    __name__: str

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return the output for a 1-d array, float32, in the library of the form; same library, shape (d,)."""

    def given(self, x: Any) -> Any:
        """Return the vector in the compressor's own type; x itself where that is float32."""
        if isinstance(x, np.ndarray):
            return x if self.dtype == torch.float32 else x.astype(str(self.dtype).removeprefix("torch."))
        return x.to(self.dtype)


def name_of(function: Callable[..., Any]) -> str:
    """Return a function's name, or its class's."""
    return getattr(function, "__qualname__", type(function).__name__).rpartition(".")[2]


def required(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that must be given by place."""
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in places and p.default is inspect.Parameter.empty]


# A plain function of a torch tensor or a numpy array.


class Function(Form):
    """A function x -> x_hat with its own randomness."""

    def __init__(self, function: Callable[[Any], Any], library: str) -> None:
        self.function, self.library = function, library
        self.__name__ = name_of(function)

    def __call__(self, x: Any) -> Any:
        """Call it."""
        return self.function(self.given(x))


# A codec as hivemind has it: ``compress(tensor, info, allow_inplace=False)`` and ``extract(message)``.


class Info(NamedTuple):
    """What hivemind's codecs receive about a tensor beside its entries (``CompressionInfo``)."""

    key: Any
    descriptor: Any = None
    part_index: int = 0
    part_size: int | None = None


class Hivemind(Form):
    """extract(compress(x))."""

    def __init__(self, codec: Any) -> None:
        self.codec = codec
        self.__name__ = type(codec).__name__
        self._informed = len(required(codec.compress)) > 1

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Compress and extract."""
        return self.receive(self.send(x)).reshape(x.shape)

    def send(self, x: torch.Tensor) -> Any:
        """Return what compress returns."""
        given = self.given(x)
        return self.codec.compress(given, *((Info(key=0, descriptor=given),) if self._informed else ()))

    def receive(self, message: Any) -> torch.Tensor:
        """Return what extract makes of it."""
        return self.codec.extract(message)


# A communication hook of torch's DistributedDataParallel, run in a process group of one or of several threads.

PATIENCE_S = 20.0  # for ranks that have as much to do as one that has ended


class Bucket:
    """What ``torch.distributed.GradBucket`` offers a hook: one bucket that holds one parameter's gradient."""

    def __init__(self, gradient: torch.Tensor) -> None:
        self._buffer = gradient
        self._parameter = torch.nn.Parameter(torch.zeros_like(gradient))

    def buffer(self) -> torch.Tensor:
        """Return the flattened gradients, shape (d,)."""
        return self._buffer

    def set_buffer(self, buffer: torch.Tensor) -> None:
        """Replace the flattened gradients."""
        self._buffer = buffer

    def gradients(self) -> list[torch.Tensor]:
        """Return a view for each parameter."""
        return [self._buffer]

    def parameters(self) -> list[torch.Tensor]:
        """Return the parameters."""
        return [self._parameter]

    def index(self) -> int:
        """Return the number of the bucket."""
        return 0

    def is_last(self) -> bool:
        """Return whether no bucket follows."""
        return True


def _still_waiting(ranks: Sequence[Thread]) -> str:
    """Wait for all ranks; return a sentence if some do not end soon after the first one, which had as much to do."""
    end = inf
    while alive := [rank for rank, thread in enumerate(ranks) if thread.is_alive()]:
        if len(alive) < len(ranks):
            end = min(end, monotonic() + PATIENCE_S)
        if monotonic() > end:
            return (
                f"rank {alive[0]} of {len(ranks)} waits for a collective though another rank has ended: "
                "every rank must call the same collectives"
            )
        ranks[alive[0]].join(0.05)
    return ""


class Hook(Form):
    """``hook(state, bucket) -> Future``: the gradient of a group of one rank as every rank would receive it.

    Parameters
    ----------
    state : optional
        Handed to every call.  A group is started for a check, or a call, unless the caller has one.
    """

    def __init__(self, hook: Callable[[Any, Any], Any], state: Any = None) -> None:
        self.hook, self.state = hook, state
        self.__name__ = name_of(hook)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Run it on a bucket that holds a copy of x: a hook may write to its bucket."""
        with self.session():
            return self._called(self.state, x)

    def _called(self, state: Any, x: torch.Tensor) -> torch.Tensor:
        value = self.hook(state, Bucket(self.given(x).clone())).wait()
        return (value[0] if isinstance(value, list) else value).reshape(x.shape)

    def in_group(self, rounds: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
        """Run rounds in a group of m threads, one a rank; each has a copy of the state.

        Parameters
        ----------
        rounds : sequence
            In each round m vectors, each of shape (d,).

        Returns
        -------
        list
            In each round the results of the m ranks.

        Raises
        ------
        RuntimeError
            If a rank has ended and another one still waits for a collective.
        Exception
            What the first rank raised that failed.
        """
        from torch.testing._internal.distributed import multi_threaded_pg as threads

        m = len(rounds[0])
        results: list[list[torch.Tensor]] = [[] for _ in range(m)]
        errors: list[BaseException] = []
        store = dist.HashStore()

        def run(rank: int) -> None:
            try:
                dist.init_process_group("threaded", rank=rank, world_size=m, store=store)
                state = copy.deepcopy(self.state)
                results[rank] = [self._called(state, vectors[rank]) for vectors in rounds]
                dist.destroy_process_group()
            except BaseException as error:
                errors.append(error)
                threads.ProcessLocalGroup.exception_handle(error)

        torch._C._distributed_c10d._set_thread_isolation_mode(True)  # type: ignore[attr-defined]
        threads._install_threaded_pg()
        try:
            ranks = [Thread(target=run, args=(rank,), daemon=True) for rank in range(m)]
            for thread in ranks:
                thread.start()
            if waiting := _still_waiting(ranks):
                threads.ProcessLocalGroup.exception_handle(None)  # it wakes them
                for thread in ranks:
                    thread.join(PATIENCE_S)
                errors.insert(0, RuntimeError(waiting))
        finally:
            threads.ProcessLocalGroup.reset()
            threads._uninstall_threaded_pg()
            torch._C._distributed_c10d._set_thread_isolation_mode(False)  # type: ignore[attr-defined]
        if errors:
            raise errors[0]
        return [list(of_round) for of_round in zip(*results, strict=True)]

    @contextmanager
    def session(self) -> Iterator[None]:
        """Create a process group of one inside this context if there is none."""
        if dist.is_initialized():
            yield
            return
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            yield
        finally:
            dist.destroy_process_group()


# A function of a jax array, which may take a key.


class JaxFunction(Form):
    """A function x -> x_hat, or one that takes a fresh key in every call: as ``key=``, ``rng=`` or its second argument.

    Its keys are not intercepted: the statistical laws judge it.

    Raises
    ------
    ModuleNotFoundError
        Without jax.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.jax = importlib.import_module("jax")
        self.__name__ = name_of(function)
        names = list(inspect.signature(function).parameters)
        second = required(function)[1:2]
        self._key = next((name for name in ("key", "rng") if name in names), second[0] if second else None)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Call it with a fresh key."""
        seed = int(np.random.default_rng().integers(1 << 31))
        keyword = {} if self._key is None else {self._key: self.jax.random.PRNGKey(seed)}
        return np.asarray(self.function(self.jax.numpy.asarray(self.given(x)), **keyword))


# Two functions: compress and decompress, as in GRACE.

TENSOR_NAME = "gradient"


class Pair(Form):
    """decompress(compress(x)).

    compress may demand a second argument, the tensor's name; if it returns a tuple of as many parts as decompress
    demands, decompress is given the parts.
    """

    def __init__(
        self, compress: Callable[..., Any], decompress: Callable[..., Any], library: str, name: str | None = None
    ) -> None:
        self.compress, self.decompress, self.library = compress, decompress, library
        self.__name__ = name or f"{name_of(compress)}+{name_of(decompress)}"
        self._named = len(required(compress)) > 1
        self._parts = len(required(decompress))

    def __call__(self, x: Any) -> Any:
        """Compress and decompress."""
        return self.receive(self.send(x))

    def send(self, x: Any) -> Any:
        """Return what compress returns."""
        return self.compress(self.given(x), *((TENSOR_NAME,) if self._named else ()))

    def receive(self, message: Any) -> Any:
        """Return what decompress makes of it."""
        split = isinstance(message, tuple) and self._parts > 1 and len(message) == self._parts
        return self.decompress(*message) if split else self.decompress(message)


# Which of the forms a compressor of another project has.

Library = Literal["torch", "numpy", "jax"]


def form_of(target: Any, library: Library, state: Any = None) -> Form:
    """Return a compressor as a function x -> x_hat.

    Parameters
    ----------
    target
        A function, a hook, a pair, or a codec; see ``operators.laws.adapt``.
    library : Library
        Of the arrays that it takes.
    state : optional
        Of a hook.

    Raises
    ------
    TypeError
        For what has none of these forms.
    """
    if isinstance(target, tuple) and len(target) == 2 and all(map(callable, target)):
        return Pair(*target, library=library)
    if isinstance(target, type):
        raise TypeError(f"expected an instance; got the class {target.__name__}: call it first")
    if callable(getattr(target, "compress", None)) and callable(getattr(target, "extract", None)):
        return Hivemind(target)
    if callable(getattr(target, "compress", None)) and callable(getattr(target, "decompress", None)):
        return Pair(target.compress, target.decompress, library=library, name=type(target).__name__)
    if not callable(target):
        raise TypeError(
            f"expected a function, a hook(state, bucket), a pair (compress, decompress), or an object with compress "
            f"and decompress or extract; got {target!r}"
        )
    if library == "jax":
        return JaxFunction(target)
    return Hook(target, state) if _is_hook(target) else Function(target, library)


def _is_hook(target: Callable[..., Any]) -> bool:
    """Return whether two arguments must be given."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:  # a built-in function
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in places and p.default is inspect.Parameter.empty for p in parameters) == 2
