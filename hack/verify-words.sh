#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Counts patterns in comments that are hard to read. The ceilings only fall: lower one when you have rewritten comments, and never raise it.
# Refuses words that are metaphors, or that had several meanings, in Go files, scripts and documentation: in names, comments and texts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
mapfile -t go_files < <(git ls-files --cached --others --exclude-standard '*.go' ':!pkg/generated' ':!*zz_generated*' ':!*generated*.go' | while read -r f; do [[ ! -f "${f}" ]] || echo "${f}"; done)

# at_most <ceiling> <pattern> <advice>: counts the lines with a comment in which the pattern stands.
at_most() {
  local count
  count=$({ grep -hE "//.*$2" "${go_files[@]}" || true; } | wc -l)
  if ((count > $1)); then
    echo "$count comments have the pattern $2, the ceiling is $1: $3" >&2
    status=1
  elif ((count < $1)); then
    echo "$count comments have the pattern $2: lower the ceiling $1 in $0" >&2
  fi
}

relative='\b([Tt]hat|[Tt]hose|[Ww]hich|[Ww]ho)\b'
at_most 0 '\b(is|are) (that|those) (of|that|which|in|with)\b' 'name the thing again'
at_most 0 '\b([Ss]omebody|[Nn]obody)\b' 'name who it is: a user, an administrator, another controller'
at_most 0 '\b(kids|doomed|sight|hedged?|overtakes?)\b' 'use a plain word'
at_most 0 '\b([Ss]ettl(e|es|ed|ing)|[Jj]udg(e|es|ed|ing|e?ments?)|[Ss]takes?|[Oo]ffer(s|ed|ing)?|([Ii]m)?[Pp]atien(t|ce)|[Dd]ressed)\b' \
  'use a plain word, such as stabilize, evaluate, loss, suggest or timeout'
at_most 0 "${relative}.*${relative}.*${relative}.*${relative}" 'divide the sentence'

mapfile -t hand_written < <(git ls-files --cached --others --exclude-standard '*.go' '*.sh' '*.md' Makefile ':!pkg/generated' ':!*zz_generated*' ':!*generated*.go' \
  ':!hack/verify-words.sh' ':!hack/lib/words_test.go' | while read -r f; do [[ ! -f "${f}" ]] || echo "${f}"; done)

# refuse <word> <allowed> <advice>: the word may neither stand by itself nor begin or end a part of a name, as in wordOf, newWord and word_test.go.
# The word and what is allowed although it has the word are regular expressions of Perl. The word begins with a small letter.
refuse() {
  local word=$1 pattern="(?<![A-Za-z])(?:$1)(?![a-z])|(?:${1^})(?![a-z])" found rc=0
  [[ -z "$2" ]] || pattern="(?:$2)(*SKIP)(*FAIL)|${pattern}"
  found=$(grep -HnP -- "${pattern}" "${hand_written[@]}") || rc=$?
  if ((rc > 1)); then
    echo "looking for the word ${word} failed" >&2
    exit 1
  fi
  found+=$'\n'$(printf '%s\n' "${hand_written[@]}" | grep -P -- "${pattern}" | sed 's/$/: the name of the file/' || true)
  found=$(sed '/^$/d' <<<"${found}")
  if [[ -n "${found}" ]]; then
    printf '%s\nthe word %s is refused: %s\n' "${found}" "${word}" "$3" >&2
    status=1
  fi
}

refuse hands '' 'say what is taken, passed on or switched'
refuse 'nudg(e|es|ed|ing)' 'jobset-apiserver\.io/nudged' 'say what it does: touch, patch or check'
refuse 'visit(|s|ed|or|ing)' 'VisitAll' 'name the pass: each, forEach or walk, and call the function of the caller fn'
refuse 'bid(|s|ding)' '' 'name the request: reserve, ask or queue'
refuse 'prompt(|ly)' '(shell|command|confirmation) prompt' 'say when: at once, before, or after how long'
refuse standing '' 'say what holds or is stored'
refuse 'famil(y|ies)' 'IP famil|ipFamil|IPFamil|font-family|"family"|`family`|[Bb]y family of labels|by \(family|{\{family|{\.family' \
  'say what it is: a prefix of label keys, an IP family or a metric'
refuse ours '' 'say whose it is: own, managed, our programs or the name of the program'
refuse theirs 'keep theirs|"theirs", other\.step|attached to theirs' 'say whose it is, and name the thing again'
exit "${status}"
