#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the tests of the gate again and again, by turns on an idle machine and beside two busy loops and a loop of synchronous writes:
#   hack/stress.sh [unit | gate | all] [ROUNDS]   so many rounds, two by default, of the unit tests, the suites of the gate (the default), or both
#   hack/stress.sh --sums                         prints the sums of all rounds on this tree
# Each round adds a line to the file `rounds` in the cache directory, beside `green`: hash of the tree, date, what ran, with the value of
# GO_TEST_FLAGS, load, seconds, result, number of tests that were repeated, and their names. The rounds of several days and checkouts add up
# for as long as the files are the same.
# Exits with 1 if a round is red. The output of each round is in _output/stress.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh
cd ..

file=$(cache::root)/rounds
readonly file out=${PWD}/_output/stress

# sums prints a line for each kind of round on a tree.
sums() {
  [[ -f "${file}" ]] || return 0
  awk -v tree="$1" '
    $1 != tree { next }
    { key = $3 "\t" $4; rounds[key]++; seconds[key] += $5; red[key] += ($6 != "green"); repeated[key] += $7 }
    END {
      for (key in rounds) printf "%s\t%d\t%d\t%d\t%d\n", key, rounds[key], red[key], repeated[key], seconds[key] / rounds[key]
    }' "${file}" | sort | { printf 'what\tload\trounds\tred\trepeated tests\tseconds each\n'; cat; } | column -t -s $'\t'
}

if [[ "${1:-}" == --sums ]]; then
  sums "$(hack/green.sh tree)"
  exit
fi
readonly what=${1:-gate} rounds=${2:-2}
case "${what}" in
  unit | gate) parts=("${what}") ;;
  all) parts=(unit gate) ;;
  *) echo "hack/stress.sh: unknown argument ${what}; must be unit, gate, all or --sums" >&2; exit 1 ;;
esac
[[ "${rounds}" =~ ^[1-9][0-9]*$ ]] || { echo "hack/stress.sh: the number of rounds must be a positive number, not ${rounds}" >&2; exit 1; }

# Flags may leave tests out, so rounds with flags count for themselves.
kind=${what}${GO_TEST_FLAGS:+:${GO_TEST_FLAGS// /,}}
readonly kind
busy=() scratch=''

# begin_load starts what keeps the machine busy, for as long as this script runs, however it ends. Each dd is short: one that outlives its loop
# ends by itself.
begin_load() {
  scratch=$(mktemp -d -p "${out}")
  for _ in 1 2; do
    (while kill -0 $$ 2>/dev/null; do :; done) &
    busy+=($!)
  done
  (while kill -0 $$ && dd if=/dev/zero of="${scratch}/file" bs=4k count=64 oflag=sync status=none; do :; done) 2>/dev/null &
  busy+=($!)
}

end_load() {
  if ((${#busy[@]} > 0)); then
    kill "${busy[@]}" 2>/dev/null || true
    wait "${busy[@]}" 2>/dev/null || true
  fi
  busy=()
  [[ -z "${scratch}" ]] || rm -rf "${scratch}"
  scratch=''
}

mkdir -p "${out}" "$(dirname "${file}")"
trap end_load EXIT
trap 'exit 130' INT TERM
tree=$(hack/green.sh tree)
status=0
for ((round = 1; round <= rounds; round++)); do
  load=idle
  ((round % 2 == 1)) || load=busy
  log=${out}/${what}-${round}-${load}.log
  echo "== round ${round} of ${rounds}: ${what}, ${load}: ${log#"${PWD}"/}"
  [[ "${load}" == idle ]] || begin_load
  start=${SECONDS} result=green
  # Tests whose result is in the cache of go test would not run.
  GO_TEST_FLAGS="-count=1 ${GO_TEST_FLAGS:-}" hack/gate.sh "${parts[@]}" >"${log}" 2>&1 </dev/null || result=red
  seconds=$((SECONDS - start))
  end_load
  if [[ $(hack/green.sh tree) != "${tree}" ]]; then
    echo "hack/stress.sh: the tree changed during the round, which does not count" >&2
    exit 1
  fi
  mapfile -t repeated < <(awk '$1 == "flaky:" { print $2 }' "${log}" | sort -u)
  echo "${tree} $(date -u +%Y-%m-%dT%H:%M:%SZ) ${kind} ${load} ${seconds} ${result} ${#repeated[@]} ${repeated[*]}" >>"${file}"
  echo "   ${result} after ${seconds}s, ${#repeated[@]} tests were repeated: ${repeated[*]:-none}"
  if [[ "${result}" == red ]]; then
    status=1
    awk '/^ *--- FAIL|^(FAIL|error|failed|panic)/ { n = 3 } n-- > 0' "${log}" | tail -n 20
  fi
done
sums "${tree}"
exit "${status}"
