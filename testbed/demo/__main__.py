"""Run `make demo`, `make demo-local` or `make playground`."""

import sys

from testbed.demo.command import main

if __name__ == "__main__":
    sys.exit(main())
