// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// RetryNamesAfter returns when to try again for a taken name: after as long as it has been waited for so far, within
// limits. No watch shows when an object without our labels is gone.
func RetryNamesAfter(o Observed) time.Duration {
	const soonest, latest = time.Second, 30 * time.Second
	c := current(&o.JobSet.Status, jobsetv1alpha2.ChildNameConflict)
	if c == nil {
		return soonest
	}
	return min(max(o.Now.Sub(c.LastTransitionTime.Time), soonest), latest)
}

// nameConflict returns that Jobs could not be created because objects that the set does not own have their names.
// Such an object need not carry the label by which children are cached. One taken name is named, and the same one for
// as long as it is taken, so that names which become free one after the other make no noise. A full plan does not try
// all names: one that it did not try is taken still.
func nameConflict(o Observed, p Plan, names []string, c *metav1.Condition) []hostplan.Trouble {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	t := hostplan.Trouble{
		Type: jobsetv1alpha2.ChildNameConflict, Reason: reasonJobNameTaken, Message: nameTaken(names[0]), Again: RetryNamesAfter(o),
	}
	if c != nil {
		named := takenName(c.Message)
		isNamed := func(job *batchv1.Job) bool { return job.Name == named }
		untried := p.More && !slices.ContainsFunc(p.CreateJobs, isNamed) && !slices.ContainsFunc(o.Jobs, isNamed)
		if untried || slices.Contains(names, named) {
			t.Reason, t.Message = c.Reason, c.Message
		}
	}
	return []hostplan.Trouble{t}
}

// namesFree means that no Job waits for its name any more.
func namesFree() hostplan.Trouble {
	return over(jobsetv1alpha2.ChildNameConflict, helper.ReasonJobNamesFree, helper.MessageJobNamesFree)
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
