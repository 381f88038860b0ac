# To be sourced. `phase NAME COMMAND...` runs a command and notes how long it took, also for a script that called
# this one; `print_phases` prints all notes in one line.
if [ -z "${LOCKBENCH_PHASES:-}" ]; then
  LOCKBENCH_PHASES=$(mktemp)
  export LOCKBENCH_PHASES
  trap 'rm -f "$LOCKBENCH_PHASES"' EXIT
fi

phase() {
  local name=$1 begin=$SECONDS code=0
  shift
  "$@" || code=$?
  printf '%s %d:%02d\n' "$name" $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)) >>"$LOCKBENCH_PHASES"
  return $code
}

print_phases() {
  echo "phases (min:s): $(paste -sd, "$LOCKBENCH_PHASES" | sed 's/,/, /g')" >&2
}
