// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints holds the manifest of what jobset-controller needs in addition to write the addresses of Services.
package endpoints

import _ "embed"

// Controller are the additional roles and what binds them, in YAML.
//
//go:embed rbac.yaml
var Controller string
