#!/usr/bin/env bash
# clang-format and clang-tidy over the whole tree. Fails on the first kind of finding.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.h' '*.cc' | xargs clang-format --dry-run -Werror
scripts/build.sh tidy
echo "clang-format and clang-tidy: clean" >&2
