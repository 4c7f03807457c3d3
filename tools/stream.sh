#!/bin/bash
# Runs one of the streams of streams.mk: stream.sh LOG COMMAND... The command's output goes to the file, and is shown
# when it fails, and in CI always. It returns 0 also then, so that make begins the next one, and reads the .result.
log=$1 name=$(basename "$1" .log)
shift
mkdir -p "${log%/*}"

alone() { # COMMAND... One stream writes at a time, so that what another one shows stays whole.
  { flock 9 && "$@"; } 9>"${log%/*}/lock"
}

say() { alone printf '%(%T)T  %-9s  %s\n' -1 "$name" "$(cut -c -120 <<<"$*")"; }

show_log() {
  echo "===== $name"
  cat "$log"
  echo "===== end of $name"
}

progress() {
  printf '%d:%02d  ' $((SECONDS / 60)) $((SECONDS % 60))
  tail -c 8192 "$log" | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g; s/^[= ]*//; s/[= ]*$//' | grep -a '[[:alnum:]]' | tail -n 1
}

finish() { # HOW CODE
  printf '%-9s  %s\n' "$name" "$1" >"${log%.log}.result"
  say "$1"
  exit "$2"
}

interrupt() { # Tests clean up at SIGINT; what does not end by it is ended. Another Ctrl-C goes on to the next step.
  trap '' TERM HUP
  trap until=0 INT
  for step in INT:90 TERM:30 KILL:10; do
    say "is sent SIG${step%:*}, and has ${step#*:} s to end"
    $AS_ROOT kill -s "${step%:*}" -- "-$child"
    until=$((SECONDS + ${step#*:}))
    while [ -d "/proc/$child" ] && [ "$SECONDS" -lt "$until" ]; do sleep 0.2; done
    [ -d "/proc/$child" ] || break
  done
  $AS_ROOT kill -s KILL -- "-$child" 2>/dev/null # what it has left running
  finish interrupted 130
}

case $name in
  build | lint) ;;
  *) grep -qs FAILED "${log%/*}/build.result" && finish "FAILED: not run, because build has failed" 0 ;;
esac

say "begins: $*"
set -m # a process group of its own
# MAKEFLAGS are those of streams.mk. Python compiles modules once, not at each of hundreds of starts.
env -u MAKEFLAGS -u PYTHONDONTWRITEBYTECODE --default-signal=INT "$@" >"$log" 2>&1 </dev/null &
child=$!
set +m
trap interrupt INT TERM HUP
trap 'kill "$sleeping" 2>/dev/null' EXIT
until
  sleep "${STREAM_PROGRESS_SECONDS:-30}" &
  sleeping=$!
  wait -n -p ended "$child" "$sleeping"
  code=$?
  [ "$ended" = "$child" ]
do
  say "$(progress)"
  ${AS_ROOT:+sudo -n -v} # so that sudo does not ask when the next stream begins
done

result=passed
# 5: PYTEST_ARGS leave pytest no test
[ "$code" = 0 ] || { [ "$code" = 5 ] && [ "$PYTEST_ARGS" ]; } || result="FAILED, exit code $code,"
if [ "$result" != passed ] || [ "$CI" = true ]; then
  alone show_log
fi
finish "$result after $(progress)" 0
