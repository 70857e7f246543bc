#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds programs of other projects, with which tests and benchmarks run this one, unless the cache has them, and prints the directory that holds them:
# hack/ensure-peers.sh kueue|trainer|jobset|lws. Only that directory goes to stdout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh

case "${1:-}" in
  kueue) programs="peers/kueue sigs.k8s.io/kueue/cmd/kueue kueue" ;;
  trainer) programs="peers/trainer github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager trainer" ;;
  jobset) programs="peers/jobset sigs.k8s.io/jobset jobset" ;;
  lws) programs="peers/lws sigs.k8s.io/lws/cmd lws" ;;
  *) echo "hack/ensure-peers.sh: name the project, kueue, trainer, jobset or lws" >&2; exit 1 ;;
esac

# Kueue says which version it is, as its release does.
ldflags() {
  case "$1" in
    peers/kueue) echo "-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion=$(go list -C "$1" -m -f '{{.Version}}' sigs.k8s.io/kueue)" ;;
    *) echo "-s -w" ;;
  esac
}

cache::ensure "$1" "${programs}"
