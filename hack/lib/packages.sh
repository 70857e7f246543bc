# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Packages of Debian. Sourced by the scripts that need programs which no Go module has.

# packages::install <package>...: installs packages as root. It waits for another package manager to end, and tries again when a download fails.
# JOBSET_INSTALL=no forbids it, which holds while tests run: what they need is installed before.
packages::install() {
  if [[ "${JOBSET_INSTALL:-}" == no ]]; then
    echo "$* must be installed before the tests: hack/ensure-packages.sh long" >&2
    return 1
  fi
  [[ ${EUID} -eq 0 ]] && command -v apt-get >/dev/null 2>&1 || return 1
  echo "installing $* ..." >&2
  local options=(-y -q --no-install-recommends -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  # The list of packages may be missing or old.
  { DEBIAN_FRONTEND=noninteractive apt-get install "${options[@]}" "$@" ||
    { apt-get update "${options[@]}" && DEBIAN_FRONTEND=noninteractive apt-get install "${options[@]}" "$@"; }; } </dev/null >&2
}
