#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the programs of the local control plane that are not in the cache yet and prints the directory that
# holds them. Only that directory goes to stdout; progress goes to stderr.
#
#   hack/ensure-binaries.sh              what a local cluster needs
#   hack/ensure-binaries.sh --tests      what tests and checks need besides, in one directory with the former
#   hack/ensure-binaries.sh --download   only downloads the modules for what a local cluster needs, and prints nothing
#
# The cache outlives `make clean` and is shared by all checkouts of a user. Programs of one nested module are stored
# under a key made of everything that decides their content, so changing one module rebuilds that module only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh

readonly kube_version=v1.36.3
readonly version_package=k8s.io/component-base/version

# Each line: nested module, package below that module's dependencies, name of the program.
programs="
controlplane k8s.io/kubernetes/cmd/kubectl                  kubectl
controlplane k8s.io/kubernetes/cmd/kube-apiserver           kube-apiserver
controlplane k8s.io/kubernetes/cmd/kube-controller-manager  kube-controller-manager
controlplane k8s.io/kubernetes/cmd/kube-scheduler           kube-scheduler
etcd         go.etcd.io/etcd/server/v3                      etcd
kwok         sigs.k8s.io/kwok/cmd/kwok                      kwok
kwok         sigs.k8s.io/kwok/cmd/kwokctl                   kwokctl
"
case "${1:-}" in
  '' | --download) ;;
  --tests)
    programs+="
etcd         go.etcd.io/etcd/etcdctl/v3                     etcdctl
etcd         go.etcd.io/etcd/etcdutl/v3                     etcdutl
kustomize    sigs.k8s.io/kustomize/kustomize/v5             kustomize
"
    ;;
  *) echo "hack/ensure-binaries.sh: unknown argument $1; must be --tests or --download" >&2; exit 1 ;;
esac

# Clients and KWOK read the version from the programs; without these flags they would see v0.0.0.
ldflags() {
  case "$1" in
    controlplane)
      echo "-s -w -X ${version_package}.gitVersion=${kube_version} -X ${version_package}.gitMajor=1" \
        "-X ${version_package}.gitMinor=36 -X ${version_package}.gitTreeState=clean"
      ;;
    *) echo "-s -w" ;;
  esac
}

if [[ "${1:-}" == --download ]]; then
  cache::download "${programs}"
  exit
fi
cache::ensure "control plane" "${programs}"
