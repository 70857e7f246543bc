#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the path of the browser in which pages are tested: JOBSET_BROWSER, else a Chromium on PATH, else one installed by
# the package manager (as root).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh
# shellcheck source=lib/packages.sh
source lib/packages.sh

found() {
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "${name}" 2>/dev/null && return 0
  done
  return 1
}

fail() {
  cache::log "no browser was found, and none could be installed: put chromium or google-chrome on PATH, or name it in" \
    "JOBSET_BROWSER (Debian: apt-get install chromium)"
  exit 1
}

install_as_root() {
  # Without fonts, text has no width.
  packages::install chromium fonts-dejavu-core
}

if [[ -n "${JOBSET_BROWSER:-}" ]]; then
  [[ -x "${JOBSET_BROWSER}" ]] || { cache::log "JOBSET_BROWSER: ${JOBSET_BROWSER} must be a program"; exit 1; }
  echo "${JOBSET_BROWSER}"
else
  found || { install_as_root && found; } || fail
fi
