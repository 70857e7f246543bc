// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles the aggregated API server: a generic API server that serves the groups of this project
// from a store of its own. Subpackage options turns a command line into a configuration of it.
package apiserver
