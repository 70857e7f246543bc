#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests that the gate leaves out, one part after the other, each alone:
#   hack/long.sh             all parts that were not green on this tree
#   hack/long.sh PART...     these parts, whatever they were, such as faults, or those that only run by name
#   hack/long.sh --list      prints the parts
# A part that is green notes the hash of the tree in _output/long and in the cache directory (hack/green.sh), so that a run that was interrupted, or
# had a red part, goes on with the rest. With GO_TEST_FLAGS nothing is noted, because flags may leave tests out. The output of each part is in
# _output/long/<part>.log. Needs root, for real nodes and disks that fail.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly out=${PWD}/_output/long
readonly parts=(unit modules manifests e2e faults loss integration disk parity nodes upgrade bench hostile)
# These need programs of others, which take minutes to build, or a browser.
readonly by_name=(kueue trainer takeover lws dns helm docs)

# suites <packages and flags>: runs all tests of packages, also those on request.
suites() { make --no-print-directory long-suites SUITES="$*"; }

run() {
  case "$1" in
    unit) JOBSET_TESTS=long make --no-print-directory unit GO_TEST_FLAGS="-count=1 ${GO_TEST_FLAGS:-}" ;;
    modules) make --no-print-directory unit-modules ;;
    manifests) hack/verify-manifests.sh ;;
    e2e) suites ./test/e2e/... ;;
    faults) suites ./test/faults/... ;;
    loss) suites ./test/loss/... ;;
    integration) suites ./test/integration/apiserver/... ;;
    disk) suites ./test/integration/disk/... ;;
    parity) suites ./test/parity/... ;;
    nodes) make --no-print-directory node-e2e ;;
    upgrade) make --no-print-directory upgrade-smoke ;;
    bench) make --no-print-directory bench-smoke ;;
    hostile) make --no-print-directory hostile ;;
    kueue | trainer | takeover | lws | dns | helm) make --no-print-directory "$1-e2e" ;;
    docs) make --no-print-directory docs-test ;;
  esac
}

chosen=("$@")
if [[ "${1:-}" == --list ]]; then
  printf '%s\n' "${parts[@]}" "${by_name[@]/%/ (by name only)}"
  exit
fi
for part in "${chosen[@]}"; do
  [[ " ${parts[*]} ${by_name[*]} " == *" ${part} "* ]] || { echo "hack/long.sh: ${part}: there is no such part; must be one of: ${parts[*]} ${by_name[*]}" >&2; exit 1; }
done
((${#chosen[@]} > 0)) || chosen=("${parts[@]}")

mkdir -p "${out}"
hack/stop-clusters.sh
trap 'hack/stop-clusters.sh || true' EXIT
trap 'exit 130' INT TERM
hack/ensure-packages.sh long
tree=$(hack/green.sh tree)
table='' red=0
for part in "${chosen[@]}"; do
  start=${SECONDS} result=green
  if (($# == 0)) && [[ -f "${out}/${part}" && $(<"${out}/${part}") == "${tree}" ]]; then
    result='green before'
  else
    rm -f "${out}/${part}"
    echo "== ${part}: _output/long/${part}.log"
    if run "${part}" >"${out}/${part}.log" 2>&1 </dev/null; then
      # What changed meanwhile was not tested, and neither is what flags leave out.
      if [[ -n "${GO_TEST_FLAGS:-}" ]]; then
        result="green, but with GO_TEST_FLAGS=${GO_TEST_FLAGS}"
      elif [[ $(hack/green.sh tree) == "${tree}" ]]; then
        echo "${tree}" >"${out}/${part}"
        hack/green.sh note "long/${part}"
      else
        result='green, but the tree changed'
      fi
    else
      result=red red=1
      awk '/^ *--- FAIL|^(FAIL|error|failed|panic)/ { n = 3 } n-- > 0' "${out}/${part}.log" | head -n 20
    fi
    hack/stop-clusters.sh >/dev/null || true
  fi
  seconds=$((SECONDS - start))
  table+="${part}"$'\t'"${result}"$'\t'"$((seconds / 60)) min $((seconds % 60)) s"$'\n'
done
printf 'part\tresult\ttime\n%s' "${table}" | column -t -s $'\t'
exit "${red}"
