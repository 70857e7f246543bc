// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Phase is the state of an object in the words of its table. Every command shows it, and prints it with -o json.
type Phase struct {
	// State is the phase.
	State string `json:"state"`
	// Reason is why the object is in it, in one word, and Message in a sentence.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Words are the state with its reason, like "Starting (JobsNotReady)". An object that has completed needs none.
func (p Phase) Words() string {
	if p.Reason == "" || p.Reason == p.State || p.State == helper.PhaseCompleted {
		return p.State
	}
	return fmt.Sprintf("%s (%s)", p.State, p.Reason)
}

// Jobs are the numbers of a set.
type Jobs struct {
	// JobsReady is the number of Jobs that are ready or have succeeded, and JobsWanted that of all Jobs.
	JobsReady  int `json:"jobsReady"`
	JobsWanted int `json:"jobsWanted"`
	// Attempt is the number of the current attempt.
	Attempt int `json:"attempt,omitempty"`
}

// ReadyOf are the Jobs that are ready, of all, like "1/2".
func (j Jobs) ReadyOf() string { return fmt.Sprintf("%d/%d", j.JobsReady, j.JobsWanted) }

// Summary is the state of a set with its numbers, as `kubectl get jobsets -o wide` has them.
type Summary struct {
	Phase
	Jobs
}

// Summarize returns the state of a set.
func Summarize(js *jobsetv1alpha2.JobSet) Summary {
	s := helper.Summarize(js)
	return Summary{
		Phase{State: s.Phase, Reason: s.Reason, Message: cli.Clean(s.Message)},
		Jobs{JobsReady: int(s.Jobs.Up), JobsWanted: int(s.Jobs.Wanted), Attempt: int(s.Attempt)},
	}
}
