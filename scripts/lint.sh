#!/usr/bin/env bash
# clang-format over the whole tree, clang-tidy over files not known to be clean (see tidy.py) or over all files.
# Does not compile anything. Usage: lint.sh [--all]
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.h' '*.cc' | xargs -P "$(nproc)" -n 50 clang-format --dry-run -Werror
scripts/tidy.py "$@"
echo "clang-format and clang-tidy: clean" >&2
