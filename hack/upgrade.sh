#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Upgrades clusters with running sets from the programs of an earlier commit to those of this tree, and back, in every order:
#   hack/upgrade.sh [--short] [COMMIT]
# Without a commit, the programs before the first release are replaced. JOBSET_UPGRADE_SETS is the number of objects; without it there are
# few. With --short, both programs are replaced at once only; a shallow clone without that commit then replaces the programs of this tree
# by themselves.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# As in the Makefile, so that nothing is compiled twice.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:--trimpath}"
# The last commit before the first release, which the documentation calls v0.0.
readonly before_releases=05401ee93a20337cd24baba4468c62b6b9128d24
arguments=()
if [[ "${1:-}" == --short ]]; then
  arguments=(-run '^TestUpgrade$')
  shift
fi
if ! commit=$(git rev-parse --verify --quiet "${1:-${before_releases}}^{commit}"); then
  if [[ "$(git rev-parse --is-shallow-repository)" != true ]]; then
    echo "hack/upgrade.sh: the commit ${1:-${before_releases}} is not in the history of this checkout" >&2
    exit 1
  fi
  echo "hack/upgrade.sh: the commit ${1:-${before_releases}} is not in this checkout; fetch the whole history: git fetch --unshallow" >&2
  ((${#arguments[@]} > 0)) || exit 1
  echo "hack/upgrade.sh: the programs of this tree are replaced by themselves" >&2
  commit=HEAD
fi
readonly commit
readonly work="${PWD}/_output/upgrade"

rm -rf "${work}"
mkdir -p "${work}/source" "${work}/from" "${work}/to"
git archive "${commit}" | tar -x -C "${work}/source"
# build <source> <directory> <version>: one call, so that what both programs share is compiled once.
build() {
  mkdir -p "${work}/programs"
  go build -C "$1" -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$3" -o "${work}/programs/" ./cmd/apiserver ./cmd/controller
  mv "${work}/programs/apiserver" "$2/jobset-apiserver"
  mv "${work}/programs/controller" "$2/jobset-controller"
}
build "${work}/source" "${work}/from" v0.0.1-from
build . "${work}/to" v0.0.2-to
rm -rf "${work}/source"
JOBSET_BINARIES=$(hack/ensure-binaries.sh --tests) hack/tested.sh -vet=off -count=1 -timeout 60m -v "${arguments[@]}" \
  ./test/upgrade -args -from "${work}/from" -to "${work}/to"
