#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the images (build), pushes them (push), or packs the kubectl plugin (plugin), with the program in hack/images. The Makefile calls it
# with VERSION and LDFLAGS; OUTPUT is another directory for the images. Outside of a git repository, SOURCE_DATE_EPOCH and REVISION must be set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly root=${PWD}
command=${1:?build, push or plugin}

# A tree with changes is not the commit, and its images say so.
revision() {
  local commit changes
  commit=$(git rev-parse HEAD)
  changes=$(git status --porcelain)
  echo "${commit}${changes:+-dirty}"
}

images() { CGO_ENABLED=0 GOOS='' GOARCH='' GOWORK=off GOFLAGS=-mod=readonly go run -C hack/images -trimpath -buildvcs=false . "$@"; }

release=()
if [[ "${command}" != push ]]; then
  release=(--source "${root}" --version "${VERSION:?must be set, such as v1.2.3}" --revision "${REVISION:-$(revision)}"
    --created "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" --ldflags "${LDFLAGS:-}")
fi

case "${command}" in
  build) images build "${release[@]}" --output "${OUTPUT:-${root}/_output/images}" --registry "${REGISTRY:-}" --platforms "${PLATFORMS:-}" ;;
  push) images push --output "${root}/_output/images" --registry "${REGISTRY:-}" --plain-http="${PLAIN_HTTP:-false}" ;;
  plugin) images plugin "${release[@]}" --output "${root}/_output/plugin" --url "${PLUGIN_URL:-}" ;;
  *) echo "hack/images.sh: the command must be build, push or plugin, is ${command}" >&2; exit 1 ;;
esac
