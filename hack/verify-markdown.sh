#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Looks for tables, lists and marks of Markdown that readers see in another form than meant. test/docs checks links and anchors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(mktemp)
trap 'rm -f "${program}"' EXIT
CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go build -C hack/markdown -trimpath -buildvcs=false -o "${program}" .
git ls-files -z --cached --others --exclude-standard '*.md' | xargs -0 -r "${program}"
