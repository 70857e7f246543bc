#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Upgrades a local cluster with running sets from the programs of an earlier commit to those of this tree, and back.
set -euo pipefail

if [[ $# -ne 1 ]]; then
  echo "Usage: hack/upgrade.sh COMMIT: the programs of this commit are replaced with those of this tree" >&2
  exit 1
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
commit=$(git rev-parse --verify "$1^{commit}")
readonly commit
readonly work="${PWD}/_output/upgrade"

rm -rf "${work}"
mkdir -p "${work}/source" "${work}/from" "${work}/to"
git archive "${commit}" | tar -x -C "${work}/source"
readonly flag="-X k8s.io/component-base/version.gitVersion"
CGO_ENABLED=0 go build -C "${work}/source" -trimpath -ldflags "${flag}=v0.0.1-from" -o "${work}/from/jobset-apiserver" ./cmd/apiserver
CGO_ENABLED=0 go build -C "${work}/source" -trimpath -ldflags "${flag}=v0.0.1-from" -o "${work}/from/jobset-controller" ./cmd/controller
CGO_ENABLED=0 go build -trimpath -ldflags "${flag}=v0.0.2-to" -o "${work}/to/jobset-apiserver" ./cmd/apiserver
CGO_ENABLED=0 go build -trimpath -ldflags "${flag}=v0.0.2-to" -o "${work}/to/jobset-controller" ./cmd/controller
rm -rf "${work}/source"
JOBSET_BINARIES=$(hack/ensure-binaries.sh --tests) go test -count=1 -timeout 20m -v ./test/upgrade -from "${work}/from" -to "${work}/to"
