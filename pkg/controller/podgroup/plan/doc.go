// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which pods of a group get the label that says that the group is ready. Decide takes one snapshot of the
// group and returns a plan; it does nothing itself, reads no clock and gives equal plans for equal snapshots.
//
// A group is ready while at least as many of its pods run, or have succeeded, as it is meant to have
// (docs/reference/batch.md#pod-groups). Nothing is remembered but what the API shows: while a group is ready, each pod that runs
// and lacks the label gets it, at once if the pod is a replacement. A group that has lost pods labels nothing until enough run
// again; labels that pods carry stay.
package plan
