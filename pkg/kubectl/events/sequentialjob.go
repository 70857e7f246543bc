// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1/helper"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// SequentialJob is the Loader of SequentialJobs.
func SequentialJob(ctx context.Context, c *cli.Clients, name string) (Members, error) {
	return load(ctx, c.JobSets.BatchV1alpha1().SequentialJobs(c.Namespace), name, membersOfSequence)
}

// sequence are the members of a sequence.
type sequence struct {
	*batchv1alpha1.SequentialJob
	jobs map[string]bool
	// sets are the members of the JobSets, by name.
	sets     map[string]set
	workload *regexp.Regexp
}

func membersOfSequence(sj *batchv1alpha1.SequentialJob) sequence {
	s := sequence{
		SequentialJob: sj, jobs: map[string]bool{}, sets: map[string]set{},
		// Queues name their object after that of the queue, and so does the controller for the whole sequence.
		workload: regexp.MustCompile("^(job-" + regexp.QuoteMeta(sj.Name) + "-[0-9]+|sequentialjob-" + regexp.QuoteMeta(sj.Name) +
			")-[a-z0-9]{5}$"),
	}
	for _, step := range helper.Steps(&sj.Spec) {
		name := helper.ChildName(sj.Name, step.Index)
		if step.JobSet == nil {
			s.jobs[name] = true
			continue
		}
		js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: sj.CreationTimestamp}, Spec: step.JobSet.Spec}
		s.sets[name] = membersOf(js)
	}
	return s
}

// Since implements Members.
func (s sequence) Since() time.Time { return s.CreationTimestamp.Time }

// Has implements Members.
func (s sequence) Has(kind, name string) bool {
	switch {
	case kind == cli.SequentialJob.Title:
		return name == s.Name
	case kind == "Job" && s.jobs[name], kind == "Pod" && s.isPod(name), kind == "Workload" && s.workload.MatchString(name):
		return true
	}
	for child := range s.sets {
		if s.sets[child].Has(kind, name) {
			return true
		}
	}
	return false
}

// isPod returns whether the name belongs to a pod of a Job: the name of the Job, and the index and five characters after it.
func (s sequence) isPod(name string) bool {
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return false
	}
	job := name[:at]
	if s.jobs[job] {
		return true
	}
	at = strings.LastIndexByte(job, '-')
	return at >= 0 && s.jobs[job[:at]] && isNumber(job[at+1:])
}
