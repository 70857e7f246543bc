// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Report is the diagnosis of an object. Its JSON is an interface for scripts.
type Report struct {
	// Namespace and Name identify the object.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is the state of the object. State is the phase, or Unknown or NotFound.
	snapshot.Phase
	// Jobs are the numbers of a set, Progress is the progress of a sequence, ReplicaCounts are the numbers of a LeaderWorkerSet or of all
	// roles of a DisaggregatedSet, and RoleCounts are the numbers of each role.
	*snapshot.Jobs
	*snapshot.Progress
	*snapshot.ReplicaCounts
	*snapshot.RoleCounts
	// Findings are the causes, most decisive first. There is at least one.
	Findings []Finding `json:"findings"`
	// Notes say what the set asks for and does not get, which nodes its pods keep off, and what blocks drains of their
	// nodes. They explain no state.
	Notes []string `json:"notes,omitempty"`
	// NotLookedAt are the sources that could not be read.
	NotLookedAt []Gap `json:"notLookedAt,omitempty"`
}

// Finding is one cause, with what it was recognized by and what to do next.
type Finding struct {
	// Cause is the cause in one word.
	Cause Cause `json:"cause"`
	// Summary is the cause in one sentence.
	Summary string `json:"summary"`
	// Evidence is what the cause was recognized by.
	Evidence []Fact `json:"evidence,omitempty"`
	// Commands are what to run next.
	Commands []string `json:"commands,omitempty"`
}

// Fact is one observation.
type Fact struct {
	// Object is what was looked at, as kind/name.
	Object string `json:"object"`
	// Text is what was seen.
	Text string `json:"text"`
	// Time is when it began, or when it was seen last. Absent if unknown.
	Time *metav1.Time `json:"time,omitempty"`
	// Count is how often it was seen. Absent for once.
	Count int32 `json:"count,omitempty"`
}

// Gap is a source that was not read, with the reason.
type Gap struct {
	// Source is what would have been read.
	Source string `json:"source"`
	// Reason is why it was not, like "forbidden".
	Reason string `json:"reason"`
}

// sorted puts the most decisive finding first and joins findings with the same cause and sentence.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(rank(a.Cause), rank(b.Cause)) })
	return slices.CompactFunc(findings, func(a, b Finding) bool { return a.Cause == b.Cause && a.Summary == b.Summary })
}

// sayNone says that no kind has an object of the name, if none was given and all were looked for.
func (r *Report) sayNone(none *cli.NoObjectError) {
	if none == nil || r.State != stateNotFound {
		return
	}
	for i := range r.Findings {
		if r.Findings[i].Cause == NotFound {
			r.Findings[i].Summary = fmt.Sprintf("there is no %s %s in the namespace %s", cli.Titles(none.Kinds, "or"), none.Name, none.Namespace)
		}
	}
}
