"""Names of the engines, without heavy imports."""

ENGINES = ("local", "slurm", "dask")
