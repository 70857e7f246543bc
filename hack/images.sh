#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the images (build), pushes them (push), packs the kubectl plugin (plugin) or the chart (chart), makes a release of all of them
# (release), checks it (verify) and pushes it (publish), or builds, pushes and installs (install), with the program in hack/images. The Makefile
# calls it with VERSION, LDFLAGS and other variables; OUTPUT is another directory for the images, the release or what is published. The manifests
# of an installation are beside the images. Outside of a git repository, SOURCE_DATE_EPOCH and REVISION must be set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly root=${PWD}
readonly commands="build, push, plugin, chart, release, verify, publish or install"
command=${1:?${commands}}

# A tree with changes is not the commit, and its images say so.
revision() {
  local commit changes
  commit=$(git rev-parse HEAD)
  changes=$(git status --porcelain)
  echo "${commit}${changes:+-dirty}"
}

images() { CGO_ENABLED=0 GOOS='' GOARCH='' GOWORK=off GOFLAGS=-mod=readonly go run -C hack/images -trimpath -buildvcs=false . "$@"; }

# described <command> <directory> <flag>...: runs a command of the program with what is built of a source tree.
described() {
  local command=$1 source=$2
  shift 2
  images "${command}" --source "${source}" --version "${VERSION:?must be set, such as v1.2.3}" --revision "${REVISION:-$(revision)}" \
    --created "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" --ldflags "${LDFLAGS:-}" "$@"
}

readonly images_dir=${OUTPUT:-${root}/_output/images}

build() {
  described build "${root}" --output "${images_dir}" --registry "${REGISTRY:-}" --platforms "${PLATFORMS:-}"
}

push() { images push --output "${images_dir}" --registry "${REGISTRY:-}" --plain-http="${PLAIN_HTTP:-false}"; }

# absolute <file>: the program runs in another directory. A public key can be the key itself.
absolute() { if [[ -e "$1" ]]; then realpath "$1"; else echo "$1"; fi; }

readonly release_dir=${OUTPUT:-${root}/_output/release}
signing=(--signing-key "$(absolute "${SIGNING_KEY:-}")" --signing-password-file "$(absolute "${SIGNING_PASSWORD_FILE:-}")")

# What git ignores cannot get into a release, because it is built from a copy of the commit.
release() {
  local changes source
  changes=$(git status --porcelain)
  if [[ -n "${changes}" ]]; then
    printf 'make release: the tree has changes that are not in the commit; commit, stash or remove them:\n%s\n' "${changes}" >&2
    exit 1
  fi
  mkdir -p _output
  source=$(mktemp -d -p "${root}/_output")
  # shellcheck disable=SC2064 # the directory of now
  trap "rm -rf '${source}'" EXIT
  git archive --format=tar HEAD | tar -x -C "${source}"
  described release "${source}" --output "${release_dir}" --platforms "${PLATFORMS:-}" --url "${PLUGIN_URL:-}" "${signing[@]}"
}

publish() {
  images publish --release "$(absolute "${RELEASE:-${root}/_output/release}")" --output "${OUTPUT:-${root}/_output/published}" \
    --registry "${REGISTRY:-}" --plain-http="${PLAIN_HTTP:-false}" "${signing[@]}"
}

install() {
  if [[ -z "${REGISTRY:-}" ]]; then
    echo "make install-from-source: a registry is required, which the nodes can pull from: REGISTRY=registry.example.com/team" >&2
    exit 1
  fi
  local manifests=${images_dir%/*}/install.yaml
  build
  push
  images render --source "${root}" --images "${images_dir}" --registry "${REGISTRY}" --overlay "${OVERLAY:-embedded}" --output "${manifests}"
  kubectl apply --server-side -f "${manifests}"
}

case "${command}" in
  build | push | release | publish | install) "${command}" ;;
  plugin) described plugin "${root}" --output "${root}/_output/plugin" --url "${PLUGIN_URL:-}" ;;
  chart) images chart --source "${root}" --output "${root}/_output/chart" ;;
  verify) images verify --release "$(absolute "${RELEASE:-${root}/_output/release}")" --public-key "$(absolute "${PUBLIC_KEY:-}")" ;;
  *) echo "hack/images.sh: the command must be ${commands}, is ${command}" >&2; exit 1 ;;
esac
