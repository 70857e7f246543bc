#!/usr/bin/env bash
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the pinned code generators that are not in the cache yet and prints the directory that holds them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=lib/cache.sh
source lib/cache.sh

# Each line: nested module, package below that module's dependencies, name of the program.
readonly programs="
tools k8s.io/code-generator/cmd/go-to-protobuf                 go-to-protobuf
tools k8s.io/code-generator/cmd/go-to-protobuf/protoc-gen-gogo protoc-gen-gogo
tools golang.org/x/tools/cmd/goimports                         goimports
tools k8s.io/code-generator/cmd/deepcopy-gen                   deepcopy-gen
tools k8s.io/code-generator/cmd/defaulter-gen                  defaulter-gen
tools k8s.io/code-generator/cmd/conversion-gen                 conversion-gen
tools k8s.io/kube-openapi/cmd/openapi-gen                      openapi-gen
tools k8s.io/code-generator/cmd/applyconfiguration-gen         applyconfiguration-gen
tools k8s.io/code-generator/cmd/client-gen                     client-gen
tools k8s.io/code-generator/cmd/lister-gen                     lister-gen
tools k8s.io/code-generator/cmd/informer-gen                   informer-gen
"

ldflags() { echo "-s -w"; }

cache::ensure "code generators" "${programs}"
