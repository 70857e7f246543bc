#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Regenerates all generated code in a copy of the tree and fails when the result differs from what is here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
mkdir "${scratch}/after"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  # A file that was removed but is still in the index has nothing to copy.
  [[ ! -e "${file}" ]] || printf '%s\0' "${file}"
done >"${scratch}/files"
tar --create --null --files-from "${scratch}/files" | tar --extract --directory "${scratch}/after"
cp -a "${scratch}/after" "${scratch}/before"

if ! "${scratch}/after/hack/update-codegen.sh" >"${scratch}/log" 2>&1; then
  cat "${scratch}/log"
  echo "hack/update-codegen.sh failed in a copy of the tree" >&2
  exit 1
fi
if ! diff --recursive --unified --exclude bin --exclude _output --exclude .git "${scratch}/before" "${scratch}/after" |
  sed "s|${scratch}/||g"; then
  echo "generated code is not up to date: run make generate and commit the result" >&2
  exit 1
fi
