#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Compiles every package with its tests and runs go vet on it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go vet ./...
go vet -C hack/images ./...
go vet -C hack/helm ./...
