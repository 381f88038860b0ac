#!/usr/bin/env bash
# Builds lockbench with all that it can have, and makes Debian packages of it in build/packages. Prints their names.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
scripts/install_packages.sh build package
scripts/build.sh release -DLOCKBENCH_TESTS=OFF -DLOCKBENCH_{POSTGRES,MYSQL,ETCD,METRICS,MPI}=ON -- installable
rm -rf build/packages
cpack --config build/release/CPackConfig.cmake -B build/packages >build/package.log 2>&1 || { cat build/package.log >&2; exit 1; }
rm -rf build/packages/_CPack_Packages
ls build/packages/*.deb
