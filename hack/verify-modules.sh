#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that go.mod and go.sum of every module are tidy and that the module cache holds what go.sum says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
while read -r file; do
  module=$(dirname "${file}")
  if ! go mod tidy -C "${module}" -diff; then
    echo "${file}: not tidy; run: go mod tidy -C ${module}" >&2
    status=1
  fi
done < <(git ls-files --cached --others --exclude-standard go.mod '*/go.mod')
go mod verify || status=1
exit "${status}"
