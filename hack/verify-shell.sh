#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks the syntax of the shell scripts, and that those which are called are executable.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
while read -r file; do
  [[ -f "${file}" ]] || continue
  bash -n "${file}" || status=1
  if [[ "$(head -n 1 "${file}")" == '#!'* && ! -x "${file}" ]]; then
    echo "${file}: must be executable" >&2
    status=1
  fi
done < <(git ls-files --cached --others --exclude-standard '*.sh' .ci/run)
exit "${status}"
