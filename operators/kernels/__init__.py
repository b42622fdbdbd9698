"""The operators' hot loops.  Each folder is one primitive with three implementations, equal bit for bit.

reference.py : torch, plain and slow, on any device.
cpu.py : numba, one thread.
cuda.py : Triton; also runs on CPU tensors under TRITON_INTERPRET=1, for tests.

The folder's ``__init__`` states the contract and calls the implementation that ``backend`` chooses.
"""
