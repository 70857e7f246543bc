// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// RetryNamesAfter returns when to try again for a taken name: after as long as it has been waited for so far, within
// limits. No watch shows when an object without our labels is gone.
func RetryNamesAfter(o Observed) time.Duration {
	const soonest, latest = time.Second, 30 * time.Second
	c := meta.FindStatusCondition(o.JobSet.Status.Conditions, jobsetv1alpha2.ChildNameConflict)
	if c == nil || c.Status != metav1.ConditionTrue {
		return soonest
	}
	return min(max(o.Now.Sub(c.LastTransitionTime.Time), soonest), latest)
}

// setNameConflict reports that Jobs could not be created because objects that the set does not own have their names.
// Such an object need not carry the label by which children are cached. One taken name is named, and the same one for
// as long as it is taken, so that names which become free one after the other make no noise. A full plan does not try
// all names: one that it did not try is taken still.
func (b *statusBuilder) setNameConflict(p Plan, names []string) {
	slices.Sort(names)
	if c := meta.FindStatusCondition(b.next.Conditions, jobsetv1alpha2.ChildNameConflict); c != nil && c.Status == metav1.ConditionTrue {
		named := takenName(c.Message)
		isNamed := func(job *batchv1.Job) bool { return job.Name == named }
		untried := p.More && !slices.ContainsFunc(p.CreateJobs, isNamed) && !slices.ContainsFunc(b.o.Jobs, isNamed)
		if untried || slices.Contains(names, named) {
			return
		}
	}
	b.set(jobsetv1alpha2.ChildNameConflict, metav1.ConditionTrue, reasonJobNameTaken, nameTaken(names[0]))
}

// endNameConflict notes that no Job waits for its name any more.
func (b *statusBuilder) endNameConflict() {
	b.set(jobsetv1alpha2.ChildNameConflict, metav1.ConditionFalse, helper.ReasonJobNamesFree, helper.MessageJobNamesFree)
}

const (
	beforeTakenName = "a job named "
	afterTakenName  = " already exists and does not belong to the jobset; the jobset creates its own once that job is deleted"
)

func nameTaken(job string) string { return beforeTakenName + job + afterTakenName }

// takenName returns the name in a message of nameTaken.
func takenName(message string) string {
	return strings.TrimSuffix(strings.TrimPrefix(message, beforeTakenName), afterTakenName)
}
