"""``python -m sparsekit``: the same as the command ``sparsekit``."""

import sys

from ._compare.cli import main

if __name__ == "__main__":
    sys.exit(main())
