#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the pinned linters; .golangci.yml says which, and what they leave out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$(hack/ensure-lint.sh)

# The garbage collector would take a sixth of the CPU.
export GOGC=400 GOMEMLIMIT=5GiB

"${bin}/golangci-lint" run --allow-parallel-runners ./...
config=${PWD}/.golangci.yml
for module in hack/images hack/helm hack/prometheus hack/gitops hack/s3 hack/site hack/markdown hack/vulnerabilities examples/client-go; do
  (cd "${module}" && "${bin}/golangci-lint" run --allow-parallel-runners --config "${config}" ./...)
done
