// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package actions holds what users may do to a LeaderWorkerSet without the right to edit it: restart, rollback, pause
// and resume. Each one is a function that changes the set that was read, and says what came of it; or returns an error
// and changes nothing. A restart changes the status only, pause and resume change spec.paused, and a rollback changes
// spec.leaderWorkerTemplate and spec.networkConfig.
//
// There is no clock, no I/O and no random choice: the store may call a function again, on a newer object, until its result is stored. The
// revisions to which a set can be rolled back are read before. See docs/actions.md.
package actions
