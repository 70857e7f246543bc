#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the object storage of tests, unless the cache has it, and prints the directory that holds it. Only that directory goes to stdout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh

ldflags() { echo "-s -w"; }

cache::ensure s3 "s3 . s3"
