#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the pinned Hugo, if it is not in the cache yet, and prints its directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh

readonly programs="
site github.com/gohugoio/hugo hugo
"

ldflags() { echo "-s -w"; }

cache::ensure "Hugo" "${programs}"
