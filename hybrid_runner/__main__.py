"""`python -m hybrid_runner` is `hybrid-runner`."""

import sys

from hybrid_runner.cli import main

if __name__ == "__main__":
    sys.exit(main())
