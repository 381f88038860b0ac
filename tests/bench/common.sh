# Functions of several benches, to be sourced.

# The median of the numbers on standard input, one a line; "-" if there is none.
median() { sort -g | awk '{ v[NR] = $1 } END { print !NR ? "-" : (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# Starts a Redis without durability and sets `server` to its pid. Usage: start_redis PORT FOLDER [OPTION...]
start_redis() {
  redis-server --port "$1" --bind 127.0.0.1 --save "" --appendonly no --dir "$2" "${@:3}" >"$2/log$1" 2>&1 &
  server=$!
  for _ in $(seq 100); do redis-cli -p "$1" ping >/dev/null 2>&1 && return; read -rt 0.05 <> <(:) || true; done
  redis-cli -p "$1" ping >/dev/null
}
