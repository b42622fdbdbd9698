"""Convergence and runtime theorems, one published result per file; each exports the Bound of its name."""

from .pasgd_compressed import pasgd_compressed as pasgd_compressed
from .pasgd_compressed_runtime import pasgd_compressed_runtime as pasgd_compressed_runtime
from .pasgd_iterations import pasgd_iterations as pasgd_iterations
from .pasgd_runtime import pasgd_runtime as pasgd_runtime
