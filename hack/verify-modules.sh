#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that go.mod and go.sum of every module are tidy and that the module cache holds what go.sum says. Modules of other versions of
# the control plane and of etcd are left to the builds that use them, since each would download another Kubernetes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=lib/versions.sh
source hack/lib/versions.sh

status=0
while read -r file; do
  module=$(dirname "${file}")
  [[ "${module}" != hack/controlplane/* && "${module}" != hack/etcd/* || "${module}" == "hack/controlplane/${default_kubernetes}" ]] || continue
  if ! go mod tidy -C "${module}" -diff; then
    echo "${file}: not tidy; run: go mod tidy -C ${module}" >&2
    status=1
  fi
done < <(git ls-files --cached --others --exclude-standard go.mod '*/go.mod')
go mod verify || status=1

# used <module>: the modules of which the programs of a nested module have packages, with their versions.
used() {
  go list -C "hack/$1" -deps -f '{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}' tool | sort -u
}

# What KWOK and the control plane share is compiled once only as long as all of it is the same.
differs=$(join <(used kwok) <(used "controlplane/${default_kubernetes}") | awk '$2 != $3 { print "hack/kwok/go.mod: " $1 " is " $2 ", but " $3 " in the control plane" }')
if [[ -n "${differs}" ]]; then
  printf '%s\nreplace these versions in hack/kwok/go.mod by those of the control plane\n' "${differs}" >&2
  status=1
fi
exit "${status}"
