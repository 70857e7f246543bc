// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroups holds the manifest of what jobset-controller needs in addition for groups of pods.
package podgroups

import _ "embed"

// Controller are the additional roles and what binds them, in YAML.
//
//go:embed rbac.yaml
var Controller string
