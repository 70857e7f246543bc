#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs tests on every version of Kubernetes that is supported, and on the oldest external etcd, and writes the tables of docs/versions.md:
#   hack/matrix.sh [VERSION...]   such as 1.34 1.37; all of hack/controlplane by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# As in the Makefile, so that nothing is compiled twice.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:--trimpath}"
# shellcheck source=lib/versions.sh
source hack/lib/versions.sh

versions=("$@")
readonly out=${PWD}/_output/matrix
# What a run of all versions leaves is of one tree.
(($# > 0)) || { mapfile -t versions < <(ls hack/controlplane); rm -rf "${out}"; }
readonly versions
tree="commit $(git rev-parse --short=12 HEAD) of $(git log -1 --format=%cs)"
# All tests, not only those of the gate.
export JOBSET_TESTS=long
# What a user does first, each kind once, and what depends on the version.
short=(
  RunsToCompletion SuspendAndResume RetryGrantsRestarts JobFailureWithoutPolicyFailsTheSet ClientSideApplyAndDiff
  ServerSideApplyTwiceChangesNothing PatchesOfAllKindsAndEdit GetPrintsUpstreamColumnsAndMoreWhenWide
  WatchAndFieldSelectors ObjectCountQuota RolesDecideWhatUsersMayDo ValidatingAdmissionPolicyRefuses
  SequenceRunsToCompletion SequenceInQueue PodGroupWaitsForItsSize PluginOnALeaderWorkerSet DisaggregatedSet ExclusivePlacement
  ServiceEndpoints OrphanedChildrenAreAdopted
)
mkdir -p "${out}"
make --no-print-directory build

# run <name> <arguments of go test>: what has failed is in the table and in the output, and the rest runs.
failed=()
run() {
  local name=$1
  shift
  echo "== ${name}: go test $*"
  CLUSTER_BIN=${PWD}/bin go test -vet=off -count=1 -timeout 90m -p 1 -json "$@" >"${out}/${name}.json" || failed+=("${name}")
}

for version in "${versions[@]}"; do
  JOBSET_BINARIES=$(KUBERNETES=${version} hack/ensure-binaries.sh --tests)
  export JOBSET_BINARIES
  MATRIX_OUTPUT="${out}/${version}.features" run "${version}-features" ./test/matrix
  run "${version}-integration" ./test/integration/apiserver
  run "${version}-parity" ./test/parity/...
  run "${version}-e2e" -run "^Test($(IFS='|'; echo "${short[*]}"))\$" ./test/e2e
done
if (($# == 0)); then
  for line in 3.5 ""; do # the last one is the one that tests use
    JOBSET_BINARIES=$(ETCD=${line} hack/ensure-binaries.sh --tests)
    run "etcd-$("${JOBSET_BINARIES}/etcd" --version | awk '/^etcd Version/ { print $3 }')" ./test/integration/apiserver
  done
fi
go run ./hack/matrix -results "${out}" -page docs/versions.md -tree "${tree}"
if ((${#failed[@]} > 0)); then
  echo "failed: ${failed[*]}; the results are in ${out}" >&2
  exit 1
fi
