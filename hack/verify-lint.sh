#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the pinned linters.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$(hack/ensure-lint.sh)

# Left out: ST1000 (a comment on every package) and ST1003 (names, which generated and Kubernetes-style code breaks).
mapfile -t packages < <(go list ./... | grep -v /pkg/generated/)
"${bin}/staticcheck" -checks 'all,-ST1000,-ST1003' "${packages[@]}"
