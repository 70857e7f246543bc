#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Compares the seconds of CPU that parts of `make test` took when they ran last with hack/budgets. A part that takes half as
# much again has become too slow. What has not run is not checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
while read -r name budget; do
  [[ -n "${name}" && "${name}" != \#* ]] || continue
  note=_output/cpu/${name}
  [[ -f "${note}" ]] || continue
  spent=$(<"${note}")
  if ((2 * spent > 3 * budget)); then
    echo "${name} took ${spent}s of CPU, which is more than one and a half times its budget of ${budget}s (hack/budgets):" \
      "make it faster; if the machine was busy with something else, run make ${name} again" >&2
    status=1
  fi
done <hack/budgets
exit "${status}"
