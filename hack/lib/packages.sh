# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Packages of Debian. Sourced by the scripts that need programs which no Go module has.

packages::is_root() { [[ ${EUID} -eq 0 ]]; }

# packages::install <package>...: installs packages as root, and prints one line; if that fails, one more that says why. It waits two minutes for
# another package manager to end, and tries again when a download fails. All that apt-get prints is shown with JOBSET_INSTALL=verbose.
# JOBSET_INSTALL=no forbids it, which holds while tests run: what they need is installed before.
packages::install() {
  if [[ "${JOBSET_INSTALL:-}" == no ]]; then
    echo "$* must be installed before the tests: hack/ensure-packages.sh long" >&2
    return 1
  fi
  packages::is_root && command -v apt-get >/dev/null 2>&1 || return 1
  echo "installing $* ..." >&2
  local said
  if said=$(packages::get install "$@"); then
    return
  fi
  # The list of packages may be missing or old.
  if [[ "${said}" != *'Could not get lock'* ]] && packages::get update >/dev/null && said=$(packages::get install "$@"); then
    return
  fi
  if [[ "${said}" == *'Could not get lock'* ]]; then
    echo "$*: not installed, because another package manager runs: $(grep -o 'It is held by process.*' <<<"${said}" | tail -n 1)" >&2
  else
    echo "$*: not installed: $(grep '^E: ' <<<"${said}" | tail -n 1)" >&2
  fi
  return 1
}

# packages::get <command> [package]...: calls apt-get, which never asks a question, nor waits for long. It prints to the standard output.
packages::get() {
  local command=$1 options=(-y -q --no-install-recommends -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20)
  shift
  DEBIAN_FRONTEND=noninteractive apt-get "${command}" "${options[@]}" "$@" </dev/null 2>&1 |
    if [[ "${JOBSET_INSTALL:-}" == verbose ]]; then tee /dev/stderr; else cat; fi
}
