"""``python -m gpu_validation``: same as ``gpu-validation``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
