// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package actions holds what users may do to a SequentialJob without the right to edit it: restart, retry, suspend, resume
// and cancel. Each one is a function that changes the object that was read, spec.suspend and the status at most, and says
// what came of it; or returns an error and changes nothing. What it says about a change is read from status.lastAction and
// the rest of the changed object, so that a repeated request gets the same response.
//
// There is no clock, no I/O and no random choice: the store may call a function again, on a newer object, until its
// result is stored. See docs/reference/batch.md#actions.
package actions
