#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the benchmarks in separate clusters. docs/performance.md describes what they measure.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: hack/bench.sh full|compare|smoke|in-place|stores|ten-thousand|churn [FLAGS...]

  full      all scenarios, three times each or five rounds, in new clusters, and the benchmarks of single functions (about an hour and a half)
  compare   sets beside bare Jobs, in five rounds, in one table; in a new cluster, or in that of BENCH_KUBECONFIG (about forty minutes). With
            BENCH_PEERS also beside upstream's controllers, in pairs of new clusters (longer than an hour)
  smoke     all scenarios once, small, and checks of numbers that do not depend on the machine (a few minutes)
  in-place  restarts in place beside recreation, once, which the others leave out
  stores    writes with one embedded member of etcd, with three, and with an external etcd of three members, in turn (a minute)
  ten-thousand
            sets of up to 10,000 Jobs, and a suspended one of 100,000; 10,000 sets in 1,000 namespaces; 100 sets each second; once, in new clusters
            (hours). The controller writes the endpoints of the sets
  churn     200,000 sets that are created and removed, to see whether the memory of our programs grows (more than an hour)

FLAGS go to "jobset-bench run", those of compare to "jobset-bench compare"; see "go run ./test/bench/cmd/jobset-bench run --help".

Environment:
  BENCH_OUTPUT  directory for the results               (_output/bench, _output/bench-compare, _output/bench-smoke, and so on)
  BENCH_PEERS   with any value, compare measures the same beside upstream's controllers
  BENCH_KUBECONFIG
                kubeconfig of the cluster to compare in, which may be any with a controller for JobSets. Cannot be used with BENCH_PEERS
  CLUSTER_NODES simulated nodes of ten-thousand               (50, with room for 12,500 pods)
  CLUSTER_BIN   directory with our two programs; without it they are built into bin/
  CLUSTER_KUBE_CONTROLLER_MANAGER_ARGS, CLUSTER_KUBE_SCHEDULER_ARGS
                flags for a cluster that is not stock, for a second column; docs/performance.md names some
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "${root}"
export CLUSTER_DIR="${root}/.cluster-bench" CLUSTER_STORAGE=etcd
# Simulated nodes have no DNS in which the controller could look up its own endpoints.
export CLUSTER_CONTROLLER_ARGS="--profiling --service-endpoints-canary=false"
export CLUSTER_KUBE_AUDIT_POLICY="${root}/test/bench/testdata/audit-policy.yaml"

# Sets that are compared with those without annotations.
readonly variants=(
  --variant compact:jobset-apiserver.io/metadata=compact
  --variant endpoints:jobset-apiserver.io/service-endpoints=controller
  --variant cluster:jobset-apiserver.io/service-endpoints=cluster
  --variant endpoints-compact:jobset-apiserver.io/service-endpoints=controller,jobset-apiserver.io/metadata=compact
)

# What the cluster was created with is in its directory; the next one may be another.
down() { env -u CLUSTER_STORAGE hack/cluster.sh down; }

# place [flags...]: the scenario creates its nodes.
place() { CLUSTER_NODES=1 bench place "$@"; }

# bench <scenarios> [flags...]: in a new cluster, so that memory is measured from empty stores on.
bench() {
  local scenarios=$1
  shift
  down
  hack/cluster.sh up >/dev/null
  bin/jobset-bench run --cluster-dir "${CLUSTER_DIR}" --scenarios "${scenarios}" "$@" >/dev/null
}

full() {
  local output=${BENCH_OUTPUT:-${root}/_output/bench}
  rm -rf "${output}"
  bench floor,labeled-jobs,big,run,write --output "${output}" --profiles "${variants[@]}" "$@"
  bench list --output "${output}" --profiles --keep "$@"
  bench cold --output "${output}" --keep "$@"
  bench wide --output "${output}" --profiles --keep "$@"
  bench sequences --output "${output}" --keep "$@"
  CLUSTER_NODES=50 bench groups --output "${output}" --keep "$@" # a node has room for 250 pods
  CLUSTER_NODES=50 bench leaderworkersets --output "${output}" --keep "$@"
  bench refusals --output "${output}" --keep "$@"
  place --output "${output}" --keep "$@"
  # The same with the etcd in our server, which is what a small installation has.
  CLUSTER_STORAGE=embedded bench floor,big,run,write --output "${output}/embedded" --runs 1 "$@"
  go test -run '^$' -bench . -benchmem ./pkg/controller/jobset/... ./pkg/controller/leaderworkerset/plan ./pkg/controller/placement >"${output}/functions.txt"
  measure_stores "${output}"
  bin/jobset-bench report --output "${output}"
  echo "results: ${output}" >&2
}

# measure_stores <directory>: servers behind a kube-apiserver, without a controller.
measure_stores() {
  make --no-print-directory build >/dev/null
  JOBSET_BINARIES=$(hack/ensure-binaries.sh --tests) JOBSET_TESTS=long JOBSET_BENCH_STORES=yes CLUSTER_BIN="${root}/bin" \
    go test -vet=off -count=1 -run '^TestMeasureStores$' -v ./test/integration/apiserver >"$1/stores.log" 2>&1
  sed -n '/^ *store  /,/^ *$/p' "$1/stores.log" | tee "$1/stores.txt"
}

# peer_cluster <arguments...>: the cluster of upstream's controllers, which has none of our programs.
peer_cluster() { env -u CLUSTER_STORAGE CLUSTER_DIR="${root}/.cluster-bench-upstream" CLUSTER_COMPONENTS=none hack/cluster.sh "$@"; }

peer_down() { [[ ! -d "${root}/.cluster-bench-upstream" ]] || peer_cluster down; }

# What is measured beside upstream, each line in two new clusters: memory is measured from empty stores on.
readonly beside_upstream=(
  many
  list
  large
  place
  floor,labeled-jobs,big,run,write,leaderworkersets
)

# two_clusters [flags...]: compares in new clusters, one with our programs and one with upstream's controllers.
two_clusters() {
  down
  peer_down
  hack/cluster.sh up >/dev/null
  peer_cluster up >/dev/null
  bin/jobset-bench compare --cluster-dir "${CLUSTER_DIR}" --upstream-dir "${root}/.cluster-bench-upstream" --output "${output}" "${variants[@]}" "$@"
}

# peers [flags...]: prints the tables once, with all results. If flags name scenarios, all of them run in the same clusters.
peers() {
  local scenarios last=${beside_upstream[-1]}
  if [[ " $*" == *" --scenarios"* ]]; then
    two_clusters "$@"
    return
  fi
  for scenarios in "${beside_upstream[@]}"; do
    case "${scenarios}" in
      "${last}") two_clusters --scenarios "${scenarios}" "$@" ;;
      place) CLUSTER_NODES=1 two_clusters --scenarios place "$@" >/dev/null ;; # which creates its nodes
      *) two_clusters --scenarios "${scenarios}" "$@" >/dev/null ;;
    esac
  done
}

# compare: nothing is started or stopped for a cluster that exists.
compare() {
  local output=${BENCH_OUTPUT:-${root}/_output/bench-compare}
  rm -rf "${output}"
  if [[ -n "${BENCH_KUBECONFIG:-}" ]]; then
    bin/jobset-bench compare --kubeconfig "${BENCH_KUBECONFIG}" --output "${output}" "$@"
  elif [[ -n "${BENCH_PEERS:-}" ]]; then
    # Before the clusters are started: this takes minutes unless the cache has them.
    hack/ensure-peers.sh jobset >/dev/null
    hack/ensure-peers.sh lws >/dev/null
    peers "$@"
  else
    down
    hack/cluster.sh up >/dev/null
    bin/jobset-bench compare --cluster-dir "${CLUSTER_DIR}" --output "${output}" "${variants[@]}" "$@"
  fi
  echo "results: ${output}" >&2
}

smoke() {
  local output=${BENCH_OUTPUT:-${root}/_output/bench-smoke}
  rm -rf "${output}"
  bench floor,big,run,write,list,cold,wide,sequences,groups,leaderworkersets,refusals --output "${output}" --preset smoke "$@"
  place --output "${output}" --preset smoke --check-counts "$@"
  echo "all counts are as they must be; results: ${output}" >&2
}

# in_place: one run, because 5,000 pods are recreated in it.
in_place() {
  local output=${BENCH_OUTPUT:-${root}/_output/bench-in-place} gates=--feature-gates=InPlaceRestart=true
  rm -rf "${output}"
  CLUSTER_NODES=50 CLUSTER_APISERVER_ARGS="${gates}" CLUSTER_CONTROLLER_ARGS="--profiling ${gates}" \
    bench in-place --output "${output}" --keep --runs 1 --check-counts "$@"
  bin/jobset-bench report --output "${output}"
  echo "results: ${output}" >&2
}

stores() {
  local output=${BENCH_OUTPUT:-${root}/_output/bench-stores}
  rm -rf "${output}"
  mkdir -p "${output}"
  measure_stores "${output}"
}

# ten_thousand: one run of each, because a set of 10,000 Jobs takes an hour.
ten_thousand() {
  local output=${BENCH_OUTPUT:-${root}/_output/bench-ten-thousand} scenario failed=()
  rm -rf "${output}"
  trap 'exit 130' INT TERM # an interrupt is not the failure of one scenario
  for scenario in growth many rate; do
    # A node has room for 250 pods.
    CLUSTER_NODES=${CLUSTER_NODES:-50} bench "${scenario}" --output "${output}" --keep --runs 1 \
      --variant endpoints:jobset-apiserver.io/service-endpoints=controller "$@" || failed+=("${scenario}")
  done
  bin/jobset-bench report --output "${output}"
  echo "results: ${output}" >&2
  if ((${#failed[@]} > 0)); then
    echo "error: these scenarios failed, and have the results of what was measured before: ${failed[*]}" >&2
    return 1
  fi
}

# churn: one run.
churn() {
  local output=${BENCH_OUTPUT:-${root}/_output/bench-churn}
  rm -rf "${output}"
  bench churn --output "${output}" --runs 1 "$@"
  bin/jobset-bench report --output "${output}"
  echo "results: ${output}" >&2
}

what=${1:-}
case "${what}" in
  full | compare | smoke | in-place | stores | ten-thousand | churn) shift ;;
  -h | --help | help)
    usage
    exit
    ;;
  *)
    usage >&2
    exit 1
    ;;
esac
if [[ "${what}" == compare && -n "${BENCH_KUBECONFIG:-}" && -n "${BENCH_PEERS:-}" ]]; then
  echo "error: PEERS=1 (BENCH_PEERS) and KUBECONFIG=FILE (BENCH_KUBECONFIG) cannot be used together: upstream's controllers are measured in a local cluster" \
    "of their own, beside one with our programs. Leave out PEERS to measure in the cluster of ${BENCH_KUBECONFIG}, or KUBECONFIG to compare with upstream" >&2
  exit 1
fi
if [[ "${what}" != compare && -n "${BENCH_KUBECONFIG:-}${BENCH_PEERS:-}" ]]; then
  echo "error: KUBECONFIG=FILE (BENCH_KUBECONFIG) and PEERS=1 (BENCH_PEERS) are settings of compare, and cannot be used with ${what}: unset them, or run" \
    "make bench-compare with them" >&2
  exit 1
fi
mkdir -p _output bin
# The lock is not passed on, because what is started here may outlive this script.
if [[ -z "${BENCH_LOCKED:-}" ]]; then
  status=0
  BENCH_LOCKED=yes flock --nonblock --close -E 75 _output/bench.lock "$0" "${what}" "$@" || status=$?
  [[ "${status}" != 75 ]] || echo "error: the benchmarks run already in this checkout" >&2
  exit "${status}"
fi
[[ "${what}" == compare && -n "${BENCH_KUBECONFIG:-}" ]] || trap "down || true; peer_down || true" EXIT
go build -o bin/jobset-bench ./test/bench/cmd/jobset-bench
"${what//-/_}" "$@"
