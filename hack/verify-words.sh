#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Counts patterns in comments that are hard to read. The ceilings only fall: lower one when you have rewritten comments, and never raise it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
mapfile -t go_files < <(git ls-files --cached --others --exclude-standard '*.go' ':!pkg/generated' ':!*zz_generated*' ':!*generated*.go' | while read -r f; do [[ ! -f "${f}" ]] || echo "${f}"; done)

# at_most <ceiling> <pattern> <advice>: counts the lines with a comment in which the pattern stands.
at_most() {
  local count
  count=$({ grep -hE "//.*$2" "${go_files[@]}" || true; } | wc -l)
  if ((count > $1)); then
    echo "$count comments have the pattern $2, the ceiling is $1: $3" >&2
    status=1
  elif ((count < $1)); then
    echo "$count comments have the pattern $2: lower the ceiling $1 in $0" >&2
  fi
}

relative='\b([Tt]hat|[Tt]hose|[Ww]hich|[Ww]ho)\b'
at_most 0 '\b(is|are) (that|those) (of|that|which|in|with)\b' 'name the thing again'
at_most 0 '\b([Ss]omebody|[Nn]obody)\b' 'name who it is: a user, an administrator, another controller'
at_most 0 '\b(kids|doomed|sight|hedged?|overtakes?)\b' 'use a plain word'
at_most 0 '\b([Ss]ettl(e|es|ed|ing)|[Jj]udg(e|es|ed|ing|e?ments?)|[Ss]takes?|[Oo]ffer(s|ed|ing)?|([Ii]m)?[Pp]atien(t|ce)|[Dd]ressed)\b' \
  'use a plain word, such as stabilize, evaluate, loss, suggest or timeout'
at_most 0 "${relative}.*${relative}.*${relative}.*${relative}" 'divide the sentence'
exit "${status}"
