#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# measured.sh <name> <command> [arguments]: runs a command, and notes in _output/cpu/<name> how many seconds of CPU the
# machine spent meanwhile. That counts the programs of control planes, which are no children of the tests that start them.
# hack/verify-budgets.sh compares the notes with hack/budgets.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# busy prints the time that all processors have spent on processes and interrupts, in ticks. It is 0 where that is not known.
busy() { awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8; found = 1 } END { if (!found) print 0 }' /proc/stat 2>/dev/null || echo 0; }

name=$1
shift
start=${SECONDS}
before=$(busy)
rc=0
"$@" || rc=$?
spent=$((($(busy) - before) / $(getconf CLK_TCK)))
echo "== ${name}: $((SECONDS - start))s, ${spent}s of CPU"
mkdir -p "${root}/_output/cpu"
if ((rc == 0)); then
  echo "${spent}" >"${root}/_output/cpu/${name}"
else
  rm -f "${root}/_output/cpu/${name}"
fi
exit "${rc}"
