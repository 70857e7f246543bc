#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the path of the strace with which tests make a disk fail: JOBSET_STRACE, else the one on PATH, else one installed by
# the package manager (as root).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh
# shellcheck source=lib/packages.sh
source lib/packages.sh

fail() {
  cache::log "strace was not found and could not be installed: put it on PATH, or name it in JOBSET_STRACE (Debian: apt-get install strace)"
  exit 1
}

if [[ -n "${JOBSET_STRACE:-}" ]]; then
  [[ -x "${JOBSET_STRACE}" ]] || { cache::log "JOBSET_STRACE: ${JOBSET_STRACE} must be a program"; exit 1; }
  echo "${JOBSET_STRACE}"
else
  command -v strace || { packages::install strace && command -v strace; } || fail
fi
