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

mapfile -t shell_files < <(git ls-files --cached --others --exclude-standard '*.sh' .ci/run | while read -r f; do [[ ! -f "${f}" ]] || echo "${f}"; done)
awk '
  function check() {
    if (file == "" || generated) return
    if (file ~ /\.go$/ && lines > 300) fail("has more than 300 lines; split it by topic")
    if (head !~ /Copyright The jobset-apiserver Authors\..*SPDX-License-Identifier: Apache-2\.0/) fail("must begin with the licence header")
  }
  function fail(message) { print file ": " message > "/dev/stderr"; failed = 1 }
  FNR == 1 { check(); file = FILENAME; head = ""; generated = 0 }
  { lines = FNR }
  FNR <= 6 { head = head $0 }
  /^\/\/ Code generated .* DO NOT EDIT\.$/ { generated = 1 }
  END { check(); exit failed }
' "${go_files[@]}" "${shell_files[@]}" || status=1
exit "${status}"
