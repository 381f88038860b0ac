#!/usr/bin/env bash
# clang-format and clang-tidy over the whole tree. Nothing is compiled; what clang-tidy has found clean before is
# not read again (see tidy.py).
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.h' '*.cc' | xargs -P "$(nproc)" -n 50 clang-format --dry-run -Werror
scripts/build.sh tidy -DLOCKBENCH_TESTS=ON -- lockbench_generated
scripts/tidy.py build/tidy
echo "clang-format and clang-tidy: clean" >&2
