#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the programs that real nodes need and that are not in the cache yet, and prints the directory that holds all of them. Only
# that directory goes to stdout; progress goes to stderr. What Debian packages is installed if it is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh
# shellcheck source=lib/packages.sh
source lib/packages.sh

readonly kube_version=v1.36.3
readonly version_package=k8s.io/component-base/version

# Each line: a file that the package brings, and the package.
readonly packages="
/usr/bin/containerd       containerd
/usr/sbin/runc            runc
/usr/lib/cni/ptp          containernetworking-plugins
/usr/sbin/iptables        iptables
/usr/sbin/ip              iproute2
"

readonly programs="
node k8s.io/kubernetes/cmd/kubelet    kubelet
node k8s.io/kubernetes/cmd/kube-proxy kube-proxy
dns  .                                coredns
"

ldflags() {
  case "$1" in
    node)
      echo "-s -w -X ${version_package}.gitVersion=${kube_version} -X ${version_package}.gitMajor=1" \
        "-X ${version_package}.gitMinor=36 -X ${version_package}.gitTreeState=clean"
      ;;
    *) echo "-s -w" ;;
  esac
}

install_packages() {
  local file package missing=()
  while read -r file package; do
    [[ -z "${file}" || -e "${file}" ]] || missing+=("${package}")
  done <<<"${packages}"
  ((${#missing[@]} > 0)) || return 0
  packages::install "${missing[@]}" && return
  cache::log "real nodes need ${missing[*]}: install them with the packages of your distribution, and run this as root"
  return 1
}

install_packages
[[ "${1:-}" != --packages ]] || exit 0
cache::ensure "programs of real nodes" "${programs}"
