#!/usr/bin/env bash
# Commands per second by the number of clients, compared with redis-benchmark: draws docs/generator.svg from the figures
# of generator.sh, which it saves in the same folder. Needs an idle machine for half an hour.
# Usage: sweep.sh [CLIENTS...]     default: 1 10 100 1000 10000 18000; ROUNDS=3 SECONDS_EACH=3 change the length
set -euo pipefail
cd "$(dirname "$0")/../.."
clients=("${@:-1}")
[ $# -gt 0 ] || clients=(1 10 100 1000 10000 18000)
# A ratio below the goal does not fail the sweep.
ROUNDS=${ROUNDS:-3} CSV=docs/generator.csv tests/bench/generator.sh "${clients[@]}" || [ $? -eq 2 ]
python3 tests/bench/sweep_picture.py docs/generator.csv docs/generator.svg
