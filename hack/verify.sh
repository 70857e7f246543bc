#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs every hack/verify-*.sh, also after one has failed, and fails when any of them did. Those that start a cluster run with --all only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly need_cluster=" manifests "
failed=()
for check in hack/verify-*.sh; do
  name=${check#hack/verify-}
  name=${name%.sh}
  [[ "${1:-}" == --all || "${need_cluster}" != *" ${name} "* ]] || continue
  start=${SECONDS}
  echo "-- verify ${name}"
  if "${check}" </dev/null; then
    echo "ok   verify ${name} ($((SECONDS - start))s)"
  else
    echo "FAIL verify ${name} ($((SECONDS - start))s)"
    failed+=("${name}")
  fi
done

if ((${#failed[@]} > 0)); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
