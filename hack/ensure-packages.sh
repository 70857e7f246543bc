#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Installs Debian's packages that tests and checks need, before they run:
#   hack/ensure-packages.sh gate   for `make verify` and `make test`
#   hack/ensure-packages.sh long   for `make long`, as root
# What is there already is not installed again, and asks no network. What cannot be installed is named in one line each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

case "${1:-}" in
  gate) ensure=(protoc) ;;
  long) ensure=(protoc browser strace python-client node-packages) ;;
  *) echo "hack/ensure-packages.sh: unknown argument ${1:-}; must be gate or long" >&2; exit 1 ;;
esac

status=0
for name in "${ensure[@]}"; do
  case "${name}" in
    node-packages) ./ensure-node-binaries.sh --packages ;;
    *) "./ensure-${name}.sh" >/dev/null ;;
  esac || status=1
done
exit "${status}"
