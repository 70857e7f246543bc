#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# measured.sh <name> <command> [arguments]: runs a command, and prints how long it took, and how many seconds of CPU the machine spent
# meanwhile, beside what hack/budgets says. That counts the programs of control planes, which are no children of the tests that start
# them, and also whatever else the machine does; so it is a figure to look at, and fails nothing.
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
budget=$(awk -v name="${name}" '$1 == name { print ", of a budget of " $2 "s" }' "${root}/hack/budgets")
echo "== ${name}: $((SECONDS - start))s, ${spent}s of CPU${budget}"
exit "${rc}"
