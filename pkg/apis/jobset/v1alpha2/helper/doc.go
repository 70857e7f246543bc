// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helper holds the facts about JobSets that the API server, the controller and the plugin share: phases, attempts,
// restarts, causes of failures, and the names of children. All functions are pure, and speak the versioned types.
package helper
