#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the pinned linters that are not in the cache yet and prints the directory that holds them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh

readonly programs="
lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint golangci-lint
"

ldflags() { echo "-s -w"; }

cache::ensure "linters" "${programs}"
