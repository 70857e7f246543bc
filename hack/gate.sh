#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# The gate, which every change must pass: the unit tests, then the tests on a control plane that are not on request, one suite at a time.
# `hack/gate.sh unit` and `hack/gate.sh gate` run one of the two.
# A test that fails is run again once, alone, after all others have ended: on a busy machine a failure means little. What passes then is shown as
# flaky; more than three of these fail the gate, as does any failure of a test that proves safety.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

parts=("$@")
((${#parts[@]} > 0)) || parts=(unit gate)
for name in "${parts[@]}"; do
  [[ "${name}" == unit || "${name}" == gate ]] || { echo "hack/gate.sh: unknown argument ${name}; must be unit or gate" >&2; exit 1; }
done

mkdir -p _output
# Each gate has a file of its own: another one in this checkout must not remove what is to be repeated.
failures=$(mktemp -p "${PWD}/_output" --suffix=.retest)
readonly failures
trap 'rm -f "${failures}"' EXIT
go build -trimpath -o _output/retest-program ./hack/retest
readonly run="${PWD}/_output/retest-program run -state ${failures} --"

red=()
part() {
  local name=$1
  hack/measured.sh "${name}" make --no-print-directory "${name}" GO_TEST="${run}" </dev/null || red+=("${name}")
}

for name in "${parts[@]}"; do
  # Programs of the control plane are built before any test needs them. Without them there is nothing to run.
  [[ "${name}" != gate ]] || hack/ensure-binaries.sh --tests >/dev/null || {
    echo "error: the programs of the control plane are not in the cache and cannot be built (see above); the first build needs the network" >&2
    exit 1
  }
  part "${name}"
done
# Nothing is to be repeated if no test has run.
if [[ -s "${failures}" ]] || ((${#red[@]} == 0)); then
  JOBSET_INSTALL=no hack/alone.sh \
    _output/retest-program again -state "${failures}" -log _output/flaky || red+=("repeated tests")
fi
if ((${#red[@]} > 0)); then
  printf 'failed: %s\n' "$(IFS=,; echo "${red[*]}")" >&2
  exit 1
fi
