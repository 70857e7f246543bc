// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// passes is a rig whose caches show the Jobs that were created, and a main API that refuses some.
type passes struct {
	*rig
	set   *jobsetv1alpha2.JobSet
	asked []string
	// last is the error of the last pass.
	last error
	// now is the clock of the controller.
	now *clocktesting.FakePassiveClock
	// refused is the answer to the creation of a Job.
	refused func(name string) error
}

func newPasses(t *testing.T, set *jobsetv1alpha2.JobSet, refuse func(name string) error) *passes {
	t.Helper()
	r := &passes{rig: newRig(t, set), set: set, refused: refuse, now: clocktesting.NewFakePassiveClock(time.Now())}
	r.clock = r.now
	r.build(t, gates.Gates{})
	r.deps.Runner = children.NewSlowStart(1) // for an order that does not change
	r.backlogs.window = maxBacklogs          // the Job controller is fast
	r.kube.PrependReactor("create", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		job := action.(clientgotesting.CreateAction).GetObject().(*batchv1.Job)
		r.asked = append(r.asked, job.Name)
		if err := r.refused(job.Name); err != nil {
			return true, nil, err
		}
		job.UID = types.UID("uid-" + job.Name)
		return true, job, r.caches.jobs.GetIndexer().Add(job)
	})
	if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
		t.Fatal(err)
	}
	return r
}

// pass lets the controller look at the set once. It returns the Jobs that it asked for.
func (r *passes) pass(t *testing.T) []string {
	t.Helper()
	r.asked = nil
	key := cache.MetaObjectToName(r.set)
	r.deps.Consistency.Forget(key)
	_, r.last = r.Sync(t.Context(), key)
	return r.asked
}

// later lets the controller look at the set once it may ask for Jobs again that were denied.
func (r *passes) later(t *testing.T) []string {
	t.Helper()
	return r.passAfter(t, 3*time.Minute)
}

// passAfter lets the controller look at the set after some time.
func (r *passes) passAfter(t *testing.T, after time.Duration) []string {
	t.Helper()
	r.now.SetTime(r.now.Now().Add(after))
	r.backlogs.window, r.backlogs.known = maxBacklogs, r.now.Now()
	return r.pass(t)
}

func (r *passes) exist() int { return len(r.caches.jobs.GetIndexer().List()) }

func (r *passes) notes() (notes []string) {
	for _, event := range r.events.all() {
		if note, found := strings.CutPrefix(event, "Warning JobCreationFailed Reconciling: "); found {
			notes = append(notes, note)
		}
	}
	return notes
}
