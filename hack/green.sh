#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Remembers on which trees checks were green, so that anybody can see what was checked:
#   hack/green.sh tree          prints the hash of the tree as it is now, with what is not committed; of the same files it is the same in every checkout
#   hack/green.sh note <check>  adds this hash, the date and the check, such as gate or long/e2e, to the file `green` in the cache directory
#   hack/green.sh has <check>   succeeds if the check was green on this tree
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh

file=$(cache::root)/green
readonly file

tree() {
  local index
  index=$(mktemp)
  # shellcheck disable=SC2064 # the file of now is the one to remove
  trap "rm -f '${index}'" RETURN
  cp "$(git rev-parse --git-path index)" "${index}" 2>/dev/null || rm -f "${index}"
  GIT_INDEX_FILE=${index} git -C .. add --all
  GIT_INDEX_FILE=${index} git write-tree
}

case "${1:-} ${2:+check}" in
  'tree ') tree ;;
  'note check')
    mkdir -p "$(dirname "${file}")"
    echo "$(tree) $(date -u +%Y-%m-%dT%H:%M:%SZ) $2" >>"${file}"
    ;;
  'has check')
    [[ -f "${file}" ]] || exit 1
    hash=$(tree)
    awk -v tree="${hash}" -v check="$2" '$1 == tree && $3 == check { found = 1 } END { exit !found }' "${file}"
    ;;
  *) echo "hack/green.sh: must be called with tree, note <check> or has <check>" >&2; exit 1 ;;
esac
