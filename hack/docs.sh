#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the pages of the documentation of the version VERSION into a directory of its name in DOCS_OUTPUT, or else in _output/docs, and
# checks all links. Links to files of the repository lead to the tag of a release, and to the branch main from versions that end with -dev.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${VERSION:-v0.0.0-dev}
output=${DOCS_OUTPUT:-_output/docs}
source=${version}
[[ "${version}" != *-dev ]] || source=main

bin=$(hack/ensure-hugo.sh)
mkdir -p "${output}"
output=$(cd "${output}" && pwd)
building=$(mktemp -d -p "${output}")
trap 'rm -rf "${building}"' EXIT
# Modules of Hugo are not used, so it needs no network.
if ! HUGO_CACHEDIR="${building}/cache" HUGO_PARAMS_VERSION="${version}" HUGO_PARAMS_SOURCE="${source}" \
  "${bin}/hugo" --source hack/site/theme --destination "${building}/pages" --noBuildLock >"${building}/log" 2>&1 ||
  grep -q '^WARN' "${building}/log"; then
  cat "${building}/log" >&2
  echo "Hugo has not built the documentation without errors and warnings" >&2
  exit 1
fi
GOWORK=off GOFLAGS=-mod=readonly go build -C hack/site -trimpath -buildvcs=false -o "${building}/docsite" ./docsite
"${building}/docsite" -pages "${building}/pages" -source "${PWD}" -output "${output}" -version "${version}"
