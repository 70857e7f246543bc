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
# KUBERNETES=1.37 builds the control plane of this version instead of the default; hack/controlplane has one module for each. ETCD=3.5 does
# the same for etcd.
#
# The cache outlives `make clean` and is shared by all checkouts of a user. Programs of one nested module are stored
# under a key made of everything that decides their content, so changing one module rebuilds that module only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh
# shellcheck source=lib/versions.sh
source lib/versions.sh

readonly controlplane=controlplane/${KUBERNETES:-${default_kubernetes}} etcd=etcd${ETCD:+/${ETCD}}
[[ -f "${controlplane}/go.mod" ]] || { echo "hack/ensure-binaries.sh: KUBERNETES=${KUBERNETES}: there is no hack/${controlplane}" >&2; exit 1; }
[[ -f "${etcd}/go.mod" ]] || { echo "hack/ensure-binaries.sh: ETCD=${ETCD}: there is no hack/${etcd}" >&2; exit 1; }
kube_version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "${controlplane}/go.mod")
kube_minor=${kube_version#v1.}
readonly kube_version kube_minor=${kube_minor%%.*}
readonly version_package=k8s.io/component-base/version

# Each line: nested module, package below that module's dependencies, name of the program.
programs="
${controlplane} k8s.io/kubernetes/cmd/kubectl                  kubectl
${controlplane} k8s.io/kubernetes/cmd/kube-apiserver           kube-apiserver
${controlplane} k8s.io/kubernetes/cmd/kube-controller-manager  kube-controller-manager
${controlplane} k8s.io/kubernetes/cmd/kube-scheduler           kube-scheduler
${etcd}      go.etcd.io/etcd/server/v3                      etcd
kwok         sigs.k8s.io/kwok/cmd/kwok                      kwok
kwok         sigs.k8s.io/kwok/cmd/kwokctl                   kwokctl
"
case "${1:-}" in
  '' | --download) ;;
  --tests)
    programs+="
${etcd}      go.etcd.io/etcd/etcdctl/v3                     etcdctl
${etcd}      go.etcd.io/etcd/etcdutl/v3                     etcdutl
kustomize    sigs.k8s.io/kustomize/kustomize/v5             kustomize
"
    ;;
  *) echo "hack/ensure-binaries.sh: unknown argument $1; must be --tests or --download" >&2; exit 1 ;;
esac

# Clients and KWOK read the version from the programs; without these flags they would see v0.0.0.
ldflags() {
  case "$1" in
    controlplane*)
      echo "-s -w -X ${version_package}.gitVersion=${kube_version} -X ${version_package}.gitMajor=1" \
        "-X ${version_package}.gitMinor=${kube_minor} -X ${version_package}.gitTreeState=clean"
      ;;
    *) echo "-s -w" ;;
  esac
}

if [[ "${1:-}" == --download ]]; then
  cache::download "${programs}"
  exit
fi
cache::ensure "control plane" "${programs}"
