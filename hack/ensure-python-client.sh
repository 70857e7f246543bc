#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the path of a Python that has the client of Kubernetes: JOBSET_PYTHON, else that of Debian, for which the package manager installs
# the client (as root).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh
# shellcheck source=lib/packages.sh
source lib/packages.sh

readonly python=${JOBSET_PYTHON:-/usr/bin/python3}
has_client() { [[ -x "${python}" ]] && "${python}" -c 'import kubernetes' 2>/dev/null; }

install_as_root() {
  [[ -z "${JOBSET_PYTHON:-}" ]] && packages::install python3-kubernetes
}

if ! has_client && ! { install_as_root && has_client; }; then
  cache::log "${python} has no client of Kubernetes, and it could not be installed: install it (Debian: apt-get install python3-kubernetes)," \
    "or name another Python in JOBSET_PYTHON"
  exit 1
fi
echo "${python}"
