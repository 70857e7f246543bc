#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that Go files are formatted, that hand-written Go files have at most 300 lines, and that hand-written Go and shell
# files begin with the licence header.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
mapfile -t go_files < <(git ls-files --cached --others --exclude-standard '*.go' | while read -r f; do [[ ! -f "${f}" ]] || echo "${f}"; done)
unformatted=$(gofmt -l "${go_files[@]}")
if [[ -n "${unformatted}" ]]; then
  echo "not formatted; run gofmt -w on:" >&2
  echo "${unformatted}" >&2
  status=1
fi

# Files that are older than the limit. Remove a file from the list when you split it.
readonly long_files="pkg/controller/jobset/controller_test.go"

mapfile -t shell_files < <(git ls-files --cached --others --exclude-standard '*.sh' .ci/run)
for file in "${go_files[@]}" "${shell_files[@]}"; do
  [[ -f "${file}" ]] || continue
  head=$(head -n 6 "${file}")
  if grep -q '^// Code generated .* DO NOT EDIT\.$' "${file}"; then
    continue
  fi
  if [[ "${file}" == *.go && " ${long_files} " != *" ${file} "* ]] && (($(wc -l <"${file}") > 300)); then
    echo "${file}: has more than 300 lines; split it by topic" >&2
    status=1
  fi
  if [[ "${head}" != *"Copyright The jobset-apiserver Authors."*"SPDX-License-Identifier: Apache-2.0"* ]]; then
    echo "${file}: must begin with the licence header" >&2
    status=1
  fi
done
exit "${status}"
