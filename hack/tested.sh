#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# tested.sh <arguments of go test>: runs tests as go test does, and fails also if tests did not run although go test succeeds, for example because
# one of them ended the program with 0: see hack/retest. It repeats no test.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
readonly root programs=${root}/_output/tested
mkdir -p "${programs}"
# Several calls may build at the same time, and run what they have built. The program is renamed, so that none of them runs half of it.
building=$(mktemp -d -p "${programs}")
GOFLAGS='' CGO_ENABLED=0 go build -C "${root}" -trimpath -buildvcs=false -o "${building}/retest" ./hack/retest
mv -f "${building}/retest" "${programs}/retest"
rmdir "${building}"
exec "${programs}/retest" once -- "$@"
