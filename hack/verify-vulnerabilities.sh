#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that our programs reach no known vulnerability that hack/vulnerabilities/exceptions.txt does not have. The database is pinned in
# hack/vulnerabilities/go.mod; nothing but modules is downloaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CGO_ENABLED=0 GOWORK=off

# What make build compiled is used again. The programs keep their symbol tables, which say which functions are in them.
programs=${PWD}/_output/vulnerabilities
mkdir -p "${programs}"
GOFLAGS='-mod=readonly -trimpath' GOGC=400 GOMEMLIMIT=2GiB go build -buildvcs=false -ldflags=-w -o "${programs}/" ./cmd/...

oldest=$(go list -m -f '{{.GoVersion}}')
names=()
for directory in cmd/*/; do
  names+=("${programs}/$(basename "${directory}")")
done
GOFLAGS=-mod=readonly go run -C hack/vulnerabilities -trimpath -buildvcs=false . -oldest-go "${oldest}" "${names[@]}"
