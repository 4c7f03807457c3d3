"""Replace the file named first with the text given second; the tests kill or starve this process.

The marker, an open that fails, shows a trace where the interpreter's start ends and the write begins.
"""

import contextlib
import sys
from pathlib import Path

from kquota.guard.decision_file import DecisionFile

MARKER = "/kquota-the-write-begins"


def main() -> int:
    writer = DecisionFile(Path(sys.argv[1]))
    with contextlib.suppress(FileNotFoundError):
        Path(MARKER).read_bytes()
    try:
        writer.write({"written": sys.argv[2]})
    except OSError as error:
        print(f"{error.errno} {error.filename}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
