#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs many random histories of every controller, from seeds that no run of the unit tests has, and then the tests on every version of
# Kubernetes: hack/soak.sh [histories of each kind]
set -euo pipefail
cd "$(dirname "$0")/.."

histories=${1:-1000000}
export SIMULATION_HISTORIES=$histories SIMULATION_WORLDS=$((histories / 100)) SIMULATION_FIRST=${SIMULATION_FIRST:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "soak: $histories histories of each kind from seed $SIMULATION_FIRST on"
failed=()
readonly tests='TestHistories|TestWorlds|TestRestores'
for package in $(grep -rlE --include='*_test.go' "^func (${tests})\(" ./pkg/controller | xargs -n1 dirname | grep -v '/plan$' | sort -u); do
  hack/tested.sh -count=1 -timeout 0 -run "^(${tests})\$" -v "$package" || failed+=("$package")
done
if ((${#failed[@]})); then
  printf 'soak: failed with SIMULATION_FIRST=%s: %s\n' "$SIMULATION_FIRST" "${failed[*]}" >&2
  exit 1
fi
hack/matrix.sh
