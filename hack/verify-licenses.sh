#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the licenses of all modules in our programs are in hack/licenses.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go run -C hack/images -trimpath -buildvcs=false . licenses --source "${PWD}" --policy "${PWD}/hack/licenses.yaml"
