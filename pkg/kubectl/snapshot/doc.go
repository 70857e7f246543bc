// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads a JobSet and what belongs to it, with one list call for each kind, however many objects there
// are.
package snapshot
