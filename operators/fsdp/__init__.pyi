from .reduce_scatter import CompressedReduceScatter as CompressedReduceScatter
from .register import CompressedShards as CompressedShards
from .register import register as register
