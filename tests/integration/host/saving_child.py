"""Write the decision file and the state file again and again, and print each number once both are written.

The numbers begin with the second argument; the first is the directory of both files.
"""

import sys
from itertools import count
from pathlib import Path

from kquota.guard.agent_state import AgentState, AgentStateFile
from kquota.guard.decision_file import DecisionFile

PADDING_BYTES = 12_000  # several pages


def main() -> None:
    directory = Path(sys.argv[1])
    decision = DecisionFile(directory / "decision.json")
    state = AgentStateFile(directory / "state.json", take_over=True)
    for number in count(int(sys.argv[2])):
        decision.write({"sequence": number, "padding": "x" * PADDING_BYTES})
        state.save(AgentState(signing_counter=number, cordoned_log_dirs=("/x" * 4000,)))
        print(number, flush=True)


if __name__ == "__main__":
    main()
