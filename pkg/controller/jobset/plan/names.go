// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// WithTakenNames returns the plan with a status that tells of Jobs which could not be created because objects that the
// set does not own have their names. Unlike all else this shows only when a plan is carried out: such an object need not
// carry the label by which children are cached.
func WithTakenNames(o Observed, p Plan, names []string) Plan {
	if len(names) == 0 {
		return p
	}
	st := newStatus(o)
	if p.Status != nil {
		st.next = p.Status.DeepCopy()
	}
	st.events = p.Events
	st.setNameConflict(names)
	p.Status, p.Events = st.result()
	if wait := RetryNamesAfter(o); p.RequeueAfter == 0 || wait < p.RequeueAfter {
		p.RequeueAfter = wait
	}
	return p
}

// RetryNamesAfter returns when to try again for a taken name: after as long as it has been waited for so far, within
// limits. Nobody tells when an object without our labels is gone.
func RetryNamesAfter(o Observed) time.Duration {
	const soonest, latest = time.Second, 30 * time.Second
	c := condition(&o.JobSet.Status, jobsetv1alpha2.ChildNameConflict)
	if c == nil || c.Status != metav1.ConditionTrue {
		return soonest
	}
	return min(max(o.Now.Sub(c.LastTransitionTime.Time), soonest), latest)
}

// setNameConflict names one taken name, and the same one for as long as it is taken, so that names which become free one
// after the other make no noise.
func (b *statusBuilder) setNameConflict(names []string) {
	if c := condition(b.next, jobsetv1alpha2.ChildNameConflict); c != nil && c.Status == metav1.ConditionTrue {
		for _, name := range names {
			if c.Message == nameTaken(name) {
				return
			}
		}
	}
	b.set(jobsetv1alpha2.ChildNameConflict, metav1.ConditionTrue, reasonJobNameTaken, nameTaken(names[0]))
}

// endNameConflict notes that no Job waits for its name any more.
func (b *statusBuilder) endNameConflict() {
	b.set(jobsetv1alpha2.ChildNameConflict, metav1.ConditionFalse, reasonJobNamesFree, "no job that the jobset needs is in the way")
}

func nameTaken(job string) string {
	return fmt.Sprintf("a job named %s exists that the jobset does not own; the jobset gets its own once that one is gone", job)
}
