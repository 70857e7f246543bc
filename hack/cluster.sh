#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# A Kubernetes cluster without containers on this machine, with jobset-apiserver and jobset-controller in it. The work is
# done by test/localcluster, which is built when it has changed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly sources=("${root}/hack/localcluster" "${root}/test/localcluster" "${root}/test/framework/apiservice" "${root}/pkg/features" "${root}/go.mod")
readonly program="${root}/_output/localcluster"

if [[ ! -x "${program}" || -n "$(find "${sources[@]}" -newer "${program}" -print -quit)" ]]; then
  mkdir -p "${root}/_output"
  next=$(mktemp -p "${root}/_output")
  trap 'rm -f "${next}" "${next}.began"' EXIT
  touch "${next}.began"
  CGO_ENABLED=0 go build -C "${root}" -trimpath -o "${next}" ./hack/localcluster >&2
  # What changes while it is built is newer than the program.
  touch -r "${next}.began" "${next}"
  chmod 0755 "${next}"
  mv -f "${next}" "${program}"
  rm -f "${next}.began"
  trap - EXIT
fi
exec "${program}" "${root}" "$@"
