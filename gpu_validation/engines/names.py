"""The names of the engines, which the command line shows before anything heavy is imported."""

ENGINES = ("local", "slurm", "dask")
