#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Sends hostile requests to a local cluster of its own, in which jobset-apiserver and jobset-controller may use 1 GiB of
# memory each, and checks that both go on serving. Prints a table with the peak of memory for each request.
#
# Usage: hack/hostile.sh [FLAGS...]    test/hostile explains its flags with --help; --full for all attacks.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "${root}"
export CLUSTER_DIR="${root}/.cluster-hostile" CLUSTER_NODES=4

mkdir -p _output
go build -o _output/hostile ./test/hostile
case " $* " in
  *" --help "* | *" -h "* | *" --list "*) exec _output/hostile "$@" ;;
esac
stop() {
  local keep=()
  [[ "$1" -eq 0 ]] || keep=(--keep-logs)
  hack/cluster.sh down "${keep[@]}"
}
hack/cluster.sh down --keep-logs
trap 'stop $?' EXIT
# The control plane keeps its own memory; the two programs get the soft limit that belongs to the hard one.
CLUSTER_COMPONENTS=none hack/cluster.sh up >/dev/null
export GOMEMLIMIT=${HOSTILE_GOMEMLIMIT:-900MiB}
export CLUSTER_APISERVER_ARGS=--feature-gates=DisaggregatedSet=true CLUSTER_CONTROLLER_ARGS=--feature-gates=DisaggregatedSet=true
hack/cluster.sh up >/dev/null
# The group of the gate is served by the same program as that of LeaderWorkerSets.
kubectl() { "$(hack/ensure-binaries.sh)/kubectl" --kubeconfig "${CLUSTER_DIR}/kubeconfig" "$@"; }
kubectl apply -f artifacts/components/disaggregatedset/rbac.yaml >/dev/null
kubectl get apiservice v1.leaderworkerset.x-k8s.io -o yaml |
  sed -e 's/leaderworkerset\.x-k8s\.io/disaggregatedset.x-k8s.io/' -e '/^  \(uid\|resourceVersion\|creationTimestamp\):/d' |
  kubectl create -f - >/dev/null
kubectl wait --for=condition=Available --timeout=5m apiservice/v1.disaggregatedset.x-k8s.io >/dev/null
_output/hostile --cluster-dir "${CLUSTER_DIR}" "$@"
