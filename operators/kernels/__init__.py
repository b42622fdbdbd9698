"""The operators' hot loops.  Each folder is one primitive with three implementations, equal bit for bit.

reference.py : torch, plain and slow, on any device.
cpu.py : numba; ``threads`` splits long vectors over several threads.
cuda.py : Triton; also runs on CPU tensors under TRITON_INTERPRET=1, for tests.

The folder's ``__init__`` states the contract as a protocol; ``kernels_for(x)`` has the implementations that work on x,
as in ``kernels_for(x).norms.energy(x, step)``.
"""

from .backend import Kernels as Kernels
from .backend import is_forced as is_forced
from .backend import kernels_for as kernels_for
