// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what happens to a LeaderWorkerSet: from a snapshot of the set and its children to the writes of children and the
// next status. All functions are pure (docs/reference/leaderworkerset.md#controller).
package plan
