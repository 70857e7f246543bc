// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// world is a cluster as far as one set sees it: the API servers with their checks, a Job controller, and a user. The
// controller may act on an earlier state of it.
type world struct {
	random  *rand.Rand
	clock   metav1.Time
	version int
	set     *jobsetv1alpha2.JobSet
	jobs    map[string]*batchv1.Job
	service bool
	past    []Observed
}

func newWorld(random *rand.Rand) *world {
	w := &world{random: random, clock: now, set: randomSet(random), jobs: map[string]*batchv1.Job{}}
	w.stored(&w.set.ObjectMeta)
	return w
}

func randomSet(random *rand.Rand) *jobsetv1alpha2.JobSet {
	pick := func(change ...func(*jobsetv1alpha2.JobSet)) func(*jobsetv1alpha2.JobSet) {
		return change[random.IntN(len(change))]
	}
	nothing := func(*jobsetv1alpha2.JobSet) {}
	rule := jobsetv1alpha2.FailurePolicyRule{Name: "free", Action: jobsetv1alpha2.RestartJobSetAndIgnoreMaxRestarts, TargetReplicatedJobs: []string{"a"}}
	js := newSet(pick(nothing, isSuspended), pick(nothing, failurePolicy(0), failurePolicy(2), failurePolicy(1, rule)), pick(nothing, withAny))
	if js.Spec.FailurePolicy != nil {
		pick(nothing, blockingRecreate)(js)
	}
	with("a", random.Int32N(3))(js)
	if random.IntN(2) == 0 {
		inOrder(js)
		with("b", 2)(js)
	} else {
		with("b", 2, dependsOn("a", jobsetv1alpha2.DependencyReady))(js)
	}
	with("c", 1)(js)
	return js
}

// stored gives an object the next version, as a write does.
func (w *world) stored(meta *metav1.ObjectMeta) {
	w.version++
	meta.ResourceVersion = strconv.Itoa(w.version)
}

func (w *world) observe() Observed {
	o := Observed{JobSet: w.set.DeepCopy(), ServiceExists: w.service, Claims: sets.New[string](), Now: w.clock, Gates: Gates{Attempts: true}}
	for _, job := range w.jobs {
		o.Jobs = append(o.Jobs, job.DeepCopy())
	}
	return o
}

// apply does what the API servers do with the requests that a plan becomes.
func (w *world) apply(o Observed, p Plan) {
	for _, ref := range p.DeleteJobs {
		if job := w.jobs[ref.Name]; job != nil && job.UID == ref.UID && job.DeletionTimestamp == nil {
			job.DeletionTimestamp = &w.clock
			w.stored(&job.ObjectMeta)
		}
	}
	for _, patch := range p.PatchJobs {
		if job := w.jobs[patch.Name]; job != nil && job.ResourceVersion == patch.ResourceVersion {
			job.Spec.Suspend = patch.Suspend
			job.Annotations = merged(job.Annotations, patch.Annotations)
			w.stored(&job.ObjectMeta)
		}
	}
	w.service = w.service || p.CreateService != nil
	for _, job := range p.CreateJobs {
		if w.jobs[job.Name] == nil {
			w.jobs[job.Name] = job.DeepCopy()
			w.stored(&w.jobs[job.Name].ObjectMeta)
			w.jobs[job.Name].UID = types.UID(fmt.Sprint("uid-", w.version))
		}
	}
	if p.Status != nil && o.JobSet.ResourceVersion == w.set.ResourceVersion {
		w.set.Status = *p.Status.DeepCopy()
		w.stored(&w.set.ObjectMeta)
	}
}

// anyJob returns a random Job; nil if there is none.
func (w *world) anyJob() *batchv1.Job {
	if len(w.jobs) == 0 {
		return nil
	}
	return w.jobs[slices.Sorted(maps.Keys(w.jobs))[w.random.IntN(len(w.jobs))]]
}

// happen lets something happen that is not the controller's doing.
func (w *world) happen() {
	w.clock = metav1.NewTime(w.clock.Add(time.Second))
	job := w.anyJob()
	switch n := w.random.IntN(20); {
	case n == 0:
		w.set.Spec.Suspend = ptr.To(!suspended(w.set))
		w.stored(&w.set.ObjectMeta)
	case job == nil:
	case n == 1:
		delete(w.jobs, job.Name)
	case job.DeletionTimestamp != nil:
		delete(w.jobs, job.Name)
	case jobSuspended(job):
		job.Status.Active, job.Status.Ready = 0, nil
		w.stored(&job.ObjectMeta)
	case helper.TrueJobCondition(job, batchv1.JobComplete) == nil && helper.TrueJobCondition(job, batchv1.JobFailed) == nil:
		w.proceed(job)
	}
}

// proceed is the Job controller's work on a Job that runs.
func (w *world) proceed(job *batchv1.Job) {
	if job.Status.Active == 0 || job.Status.Ready == nil {
		job.Status.Active, job.Status.Ready = 1, ptr.To[int32](int32(w.random.IntN(2)))
	} else {
		outcome := []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobComplete, batchv1.JobFailed}[w.random.IntN(3)]
		job.Status = batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: outcome, Status: corev1.ConditionTrue, LastTransitionTime: w.clock}}}
	}
	w.stored(&job.ObjectMeta)
}

// settle ends all deletions and lets pods of suspended Jobs go, as time does.
func (w *world) settle() {
	for name, job := range w.jobs {
		switch {
		case job.DeletionTimestamp != nil:
			delete(w.jobs, name)
		case jobSuspended(job):
			job.Status.Active, job.Status.Ready = 0, nil
		}
	}
}
