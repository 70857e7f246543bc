// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// Jobs that a former JobSet of the name has left behind: it was deleted with --cascade=orphan, or a restore of the
// cluster dropped the owner references.

// maxFormer is for how many former sets commands are shown.
const maxFormer = 5

// former is what a former set of the name has left behind.
type former struct {
	uid string
	// jobs are its Jobs without a controller, in the order of names.
	jobs []*batchv1.Job
	// others means that its labels are on Jobs that have a controller, too.
	others bool
}

// formerSets returns what sets of the name that are gone have left behind, in the order of their UIDs.
func formerSets(js *jobsetv1alpha2.JobSet, jobs []*batchv1.Job) (all []former) {
	for _, job := range jobs {
		uid := job.Labels[jobsetv1alpha2.JobSetUIDKey]
		if uid == "" || uid == string(js.UID) || job.Labels[jobsetv1alpha2.JobSetNameKey] != js.Name {
			continue
		}
		n := slices.IndexFunc(all, func(f former) bool { return f.uid == uid })
		if n < 0 {
			n, all = len(all), append(all, former{uid: uid})
		}
		switch {
		case metav1.GetControllerOfNoCopy(job) != nil:
			all[n].others = true
		case job.DeletionTimestamp == nil:
			all[n].jobs = append(all[n].jobs, job)
		}
	}
	all = slices.DeleteFunc(all, func(f former) bool { return len(f.jobs) == 0 })
	for i := range all {
		slices.SortFunc(all[i].jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(all, func(a, b former) int { return strings.Compare(a.uid, b.uid) })
	return all
}

// running is how many of the Jobs have not ended and are not suspended.
func (f *former) running() (n int) {
	for _, job := range f.jobs {
		if !jobEnded(job) && (job.Spec.Suspend == nil || !*job.Spec.Suspend) {
			n++
		}
	}
	return n
}

// has returns whether one of the Jobs has one of the names.
func (f *former) has(names []string) bool {
	return slices.ContainsFunc(f.jobs, func(job *batchv1.Job) bool { return slices.Contains(names, job.Name) })
}

// selector selects the Jobs, and only these.
func (f *former) selector(name string) string {
	return labels.SelectorFromSet(labels.Set{jobsetv1alpha2.JobSetNameKey: name, jobsetv1alpha2.JobSetUIDKey: f.uid}).String()
}

// target is what `kubectl delete` has to be given. A selector cannot leave out Jobs that have a controller, so that the
// names of a bounded number are given where there are some.
func (f *former) target(set string) string {
	if !f.others {
		return "jobs -l " + f.selector(set)
	}
	var names []string
	for _, job := range f.jobs[:min(len(f.jobs), maxNamed)] {
		names = append(names, job.Name)
	}
	return "jobs " + strings.Join(names, " ")
}

// blocking are the former sets that have left behind Jobs under names that the set needs.
func (d *diagnosis) blocking() []former {
	if d.JobSet == nil {
		return nil
	}
	return slices.DeleteFunc(formerSets(d.JobSet, d.FormerJobs), func(f former) bool { return !f.has(d.missing) })
}

// isLeftBehind returns whether the commands for what former sets have left behind delete the Job.
func (d *diagnosis) isLeftBehind(job *batchv1.Job) bool {
	blocking := d.blocking()
	return slices.ContainsFunc(blocking[:min(len(blocking), maxFormer)], func(f former) bool { return f.has([]string{job.Name}) })
}

// leftBehind adds to a finding the commands that delete what former sets have left behind.
func (d *diagnosis) leftBehind(f *Finding) {
	blocking := d.blocking()
	for i := range blocking[:min(len(blocking), maxFormer)] {
		was := &blocking[i]
		text := fmt.Sprintf("%s without a controller, left behind by a former set of this name with the UID %s", count(len(was.jobs), "job"),
			was.uid)
		command := d.kubectl("delete %s", was.target(d.Name))
		if n := was.running(); n > 0 {
			stops := fmt.Sprintf("stops %s that may still run", count(n, "job"))
			text, command = text+"; the deletion "+stops, command+"  # "+stops
		}
		f.Evidence = append(f.Evidence, Fact{Object: object("job", was.jobs[0].Name), Text: text, Time: at(was.jobs[0].CreationTimestamp.Time)})
		f.Commands = append(f.Commands, command)
	}
	if more := len(blocking) - maxFormer; more > 0 {
		f.Evidence = append(f.Evidence, Fact{Object: d.set(), Text: fmt.Sprintf(
			"%s more left jobs behind; their commands are shown when these are deleted", count(more, "former set"))})
	}
}
