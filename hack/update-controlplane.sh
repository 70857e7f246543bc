#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes go.mod and go.sum of the module that builds the control plane of a version of Kubernetes: hack/update-controlplane.sh 1.37.2
# writes hack/controlplane/1.37. k8s.io/kubernetes replaces its staging modules with directories, so a module that depends on it has to
# replace them with the versions that were released with it.
set -euo pipefail
version=${1:?must be a version of Kubernetes, such as 1.37.2}
[[ "${version}" =~ ^1\.([0-9]+)\.([0-9]+)$ ]] || { echo "hack/update-controlplane.sh: ${version} must have the form 1.37.2" >&2; exit 1; }
readonly staging="v0.${BASH_REMATCH[1]}.${BASH_REMATCH[2]}" minor="1.${BASH_REMATCH[1]}"
cd "$(dirname "${BASH_SOURCE[0]}")"

source=$(cd "$(mktemp -d)" && go mod download -json "k8s.io/kubernetes@v${version}" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
mkdir -p "controlplane/${minor}"
{
  echo "// Builds the control plane of Kubernetes ${minor} for tests. Written by hack/update-controlplane.sh."
  echo "module github.com/jobset-apiserver/jobset-apiserver/hack/controlplane/${minor}"
  grep -E '^(go|godebug) ' "${source}"
  printf 'tool k8s.io/kubernetes/cmd/%s\n' kube-apiserver kube-controller-manager kube-scheduler kubectl
  echo "require k8s.io/kubernetes v${version}"
  sed -nE "s,^\s*(replace )?(k8s.io/[a-z0-9-]+) => \./staging/.*,replace \2 => \2 ${staging},p" "${source}"
} >"controlplane/${minor}/go.mod"
: >"controlplane/${minor}/go.sum"
GOWORK=off go -C "controlplane/${minor}" mod tidy
GOWORK=off go -C "controlplane/${minor}" mod edit -fmt
