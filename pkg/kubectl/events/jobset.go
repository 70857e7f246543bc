// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// JobSet is the Loader of JobSets.
func JobSet(ctx context.Context, c *cli.Clients, name string) (Members, error) {
	return load(ctx, c.JobSets.JobsetV1alpha2().JobSets(c.Namespace), name, membersOf)
}

// set are the members of a set.
type set struct {
	*jobsetv1alpha2.JobSet
	jobs     map[string]bool // prefixes of the names of Jobs, up to the index
	claims   []string
	workload *regexp.Regexp
}

func membersOf(js *jobsetv1alpha2.JobSet) set {
	s := set{
		JobSet: js, jobs: map[string]bool{}, claims: helper.ClaimNames(js),
		// Queues that come from the controller of the cluster name their object after the set.
		workload: regexp.MustCompile("^jobset-" + regexp.QuoteMeta(js.Name) + "-[a-z0-9]{5}$"),
	}
	for i := range js.Spec.ReplicatedJobs {
		s.jobs[js.Name+"-"+js.Spec.ReplicatedJobs[i].Name+"-"] = true
	}
	return s
}

// Since implements Members.
func (s set) Since() time.Time { return s.CreationTimestamp.Time }

// Has implements Members.
func (s set) Has(kind, name string) bool {
	switch kind {
	case "JobSet":
		return name == s.Name
	case "Job":
		return s.isJob(name)
	case "Pod":
		return s.isPod(name)
	case "Service":
		return name == helper.ServiceName(s.JobSet)
	case "PersistentVolumeClaim":
		return slices.Contains(s.claims, name)
	case "Workload":
		return s.workload.MatchString(name)
	}
	return false
}

// isJob returns whether the name belongs to a Job: set-replicatedJob-index.
func (s set) isJob(name string) bool {
	at := strings.LastIndexByte(name, '-') + 1
	return s.jobs[name[:at]] && isNumber(name[at:])
}

// isPod returns whether the name begins with that of a Job and goes on after it.
func (s set) isPod(name string) bool {
	for at, char := range name {
		if char == '-' && s.isJob(name[:at]) {
			return true
		}
	}
	return false
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
