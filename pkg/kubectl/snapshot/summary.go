// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Summary is the state of a set in the words and numbers of `kubectl get jobsets -o wide`. Every command shows them, and prints
// them with -o json.
type Summary struct {
	// State is the phase.
	State string `json:"state"`
	// Reason is why the set is in it, in one word, and Message in a sentence.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// JobsReady is the number of Jobs that are ready or have succeeded, and JobsWanted that of all Jobs.
	JobsReady  int `json:"jobsReady"`
	JobsWanted int `json:"jobsWanted"`
	// Attempt is the number of the current attempt.
	Attempt int `json:"attempt,omitempty"`
}

// Summarize returns the state of a set.
func Summarize(js *jobsetv1alpha2.JobSet) Summary {
	s := helper.Summarize(js)
	return Summary{
		State: s.Phase, Reason: s.Reason, Message: cli.Clean(s.Message),
		JobsReady: int(s.Jobs.Up), JobsWanted: int(s.Jobs.Wanted), Attempt: int(s.Attempt),
	}
}

// Words are the state with its reason, like "Starting (JobsNotReady)". A set that has completed needs none.
func (s Summary) Words() string {
	if s.Reason == "" || s.Reason == s.State || s.State == helper.PhaseCompleted {
		return s.State
	}
	return fmt.Sprintf("%s (%s)", s.State, s.Reason)
}

// ReadyOf are the Jobs that are ready, of all, like "1/2".
func (s Summary) ReadyOf() string { return fmt.Sprintf("%d/%d", s.JobsReady, s.JobsWanted) }
