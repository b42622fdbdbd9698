"""``python -m ratedist`` is the command line."""

import sys

from .interfaces.cli import main

if __name__ == "__main__":
    sys.exit(main())
