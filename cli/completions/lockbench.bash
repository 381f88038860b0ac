# Completion for bash. The program itself knows its commands, options and names.
_lockbench() {
  local word typed=${COMP_WORDS[COMP_CWORD]}
  [ "$typed" != = ] || typed=
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    if [ "$word" = / ]; then
      compopt -o filenames
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$typed")
    else
      COMPREPLY+=("$word")
    fi
  done < <("$1" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _lockbench lockbench
