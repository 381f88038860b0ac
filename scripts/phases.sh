# Source this file. `phase NAME COMMAND...` runs a command and records its time, also for a calling script that
# sourced this file; `print_phases` prints all times in one line. A failing script prints them when it exits.
minutes_since() {
  printf '%d:%02d' $(((EPOCHSECONDS - $1) / 60)) $(((EPOCHSECONDS - $1) % 60))
}

phase() {
  local name=$1 begin=$EPOCHSECONDS code=0
  shift
  "$@" || code=$?
  echo "$name $(minutes_since "$begin")" >>"$LOCKBENCH_PHASES"
  return $code
}

print_phases() {
  echo "phases (min:s): $(paste -sd, "$LOCKBENCH_PHASES" | sed 's/,/, /g'); $(minutes_since "$LOCKBENCH_BEGIN") so far" >&2
}

if [ -z "${LOCKBENCH_PHASES:-}" ]; then
  LOCKBENCH_PHASES=$(mktemp) LOCKBENCH_BEGIN=$EPOCHSECONDS
  export LOCKBENCH_PHASES LOCKBENCH_BEGIN
  trap '[ $? -eq 0 ] || ! [ -s "$LOCKBENCH_PHASES" ] || print_phases; rm -f "$LOCKBENCH_PHASES"' EXIT
fi
