#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Stops every cluster that tests of this checkout left running, such as after a run that was killed. The cluster of `make up` goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
for directory in .cluster-*/; do
  [[ -d "${directory}" ]] || continue
  echo "stopping the cluster that an earlier run left in ${directory%/}"
  CLUSTER_DIR="${PWD}/${directory%/}" hack/cluster.sh down --keep-logs </dev/null || status=1
done
exit "${status}"
