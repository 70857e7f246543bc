# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# The version of Kubernetes whose control plane local clusters and tests have unless KUBERNETES names another one. hack/controlplane has
# a module for each version.
readonly default_kubernetes=1.37
