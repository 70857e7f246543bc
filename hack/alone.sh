#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# alone.sh <command> [arguments]: runs a command while no other one that is called this way runs in this checkout. The suites begin by stopping the
# cluster that an earlier run left, so two runs must not overlap. Says so if it has to wait.
set -euo pipefail
lock=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)/_output/suites.lock
readonly lock
mkdir -p "${lock%/*}"
flock --nonblock "${lock}" true || echo "waiting for another run of the suites in this checkout, which holds ${lock}" >&2
exec flock --close "${lock}" "$@"
