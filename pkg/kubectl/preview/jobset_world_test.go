// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	jobsetgang "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/gang"
)

// jobSetWorld carries out what the controller decides about a set, in a cluster where Jobs are ready at once and deleted at once.
type jobSetWorld struct {
	t      *testing.T
	js     *jobsetv1alpha2.JobSet
	jobs   map[string]*batchv1.Job
	groups []*unstructured.Unstructured
	claims sets.Set[string]
	now    metav1.Time
	writes int
	did    deeds
}

// deeds are what the controller did, by the names of Jobs. Creations of one pass are together.
type deeds struct {
	Created                            [][]string
	Deleted, Suspended, Resumed, Sized []string
	SetDeleted                         bool
}

func newJobSetWorld(t *testing.T, js *jobsetv1alpha2.JobSet) *jobSetWorld {
	return &jobSetWorld{
		t: t, js: js, jobs: map[string]*batchv1.Job{}, claims: sets.New[string](), now: metav1.NewTime(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)),
	}
}

// observe is a snapshot of the set and its children.
func (w *jobSetWorld) observe() plan.Observed {
	o := plan.Observed{
		JobSet: w.js, ServiceExists: true, Claims: w.claims, Now: w.now, KeepAttempts: true,
		Restored: hostplan.None[plan.Restored](), Cause: hostplan.NotObtained[*jobsetv1alpha2.FailureCause](),
		Gates: gates.Gates{ElasticJobSet: true, JobSetActiveDeadlineSeconds: true, JobSetWorkloadAwareSchedulingAPI: true},
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		o.Jobs = append(o.Jobs, w.jobs[name])
	}
	if plan.ManagedHere(w.js) && jobsetgang.AskedFor(w.js) {
		o.Grouped = &jobsetgang.Observed{API: jobsetgang.V1beta1, Objects: w.groups}
	}
	return o
}

// rest lets the controller decide until it has nothing to do.
func (w *jobSetWorld) rest() {
	w.t.Helper()
	for range 50 {
		w.now = metav1.NewTime(w.now.Add(time.Second))
		if !w.carryOut(plan.Decide(w.observe())) {
			return
		}
	}
	w.t.Fatalf("the controller finds no rest; the last it did: %+v", w.did)
}

// carryOut does what a plan says, and returns whether that is anything.
func (w *jobSetWorld) carryOut(p plan.Plan) bool {
	if p.Status != nil {
		w.js = w.js.DeepCopy()
		w.js.Status = *p.Status
	}
	for _, job := range p.DeleteJobs {
		delete(w.jobs, job.Name)
		w.did.Deleted = append(w.did.Deleted, job.Name)
	}
	for i := range p.PatchJobs {
		w.change(&p.PatchJobs[i])
	}
	for _, claim := range p.CreateClaims {
		w.claims.Insert(claim.Name)
	}
	for _, ref := range p.Groups.Delete {
		w.groups = slices.DeleteFunc(w.groups, func(o *unstructured.Unstructured) bool { return o.GetKind() == ref.Kind && o.GetName() == ref.Name })
	}
	for _, object := range p.Groups.Create {
		w.writes++
		object.SetUID(types.UID(fmt.Sprint("group-", w.writes)))
		w.groups = append(w.groups, object)
	}
	var created []string
	for _, job := range p.CreateJobs {
		w.store(job.DeepCopy(), true)
		created = append(created, job.Name)
	}
	if created != nil {
		w.did.Created = append(w.did.Created, created)
	}
	if p.DeleteJobSet {
		w.did.SetDeleted = true
		return false
	}
	return p.Status != nil || len(p.DeleteJobs)+len(p.PatchJobs)+len(p.CreateJobs)+len(p.CreateClaims)+len(p.Groups.Create)+len(p.Groups.Delete) > 0
}

func (w *jobSetWorld) change(patch *plan.JobPatch) {
	job := w.jobs[patch.Name].DeepCopy()
	if patch.ClearStartTime {
		job.Status.StartTime = nil
	}
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	maps.Copy(job.Annotations, patch.Annotations)
	if d := patch.Directives; d != nil {
		pods := &job.Spec.Template
		pods.Labels, pods.Annotations = d.Labels, d.Annotations
		pods.Spec.NodeSelector, pods.Spec.Tolerations, pods.Spec.SchedulingGates = d.NodeSelector, d.Tolerations, d.SchedulingGates
	}
	if patch.Size != nil {
		job.Spec.Parallelism, job.Spec.Completions = patch.Size.Parallelism, patch.Size.Completions
		w.did.Sized = append(w.did.Sized, job.Name)
	}
	if patch.Suspend != nil {
		job.Spec.Suspend = patch.Suspend
		if *patch.Suspend {
			w.did.Suspended = append(w.did.Suspended, job.Name)
		} else {
			w.did.Resumed = append(w.did.Resumed, job.Name)
		}
	}
	w.store(job, false)
}

// store keeps a Job whose pods run, unless it is suspended.
func (w *jobSetWorld) store(job *batchv1.Job, isNew bool) {
	w.writes++
	job.ResourceVersion = fmt.Sprint(w.writes)
	if isNew {
		job.UID = types.UID(fmt.Sprint("job-", w.writes))
	}
	pods := ptr.Deref(job.Spec.Parallelism, 1)
	if ptr.Deref(job.Spec.Suspend, false) {
		pods, job.Status.StartTime = 0, nil
	} else if job.Status.StartTime == nil {
		job.Status.StartTime = ptr.To(w.now)
	}
	job.Status.Active, job.Status.Ready = pods, ptr.To(pods)
	w.jobs[job.Name] = job
}

// end ends the Job with the condition.
func (w *jobSetWorld) end(name string, condition batchv1.JobConditionType) {
	w.t.Helper()
	job := w.jobs[name]
	if job == nil {
		w.t.Fatalf("there is no Job %s", name)
	}
	job = job.DeepCopy()
	w.store(job, false)
	job.Status.Active, job.Status.Ready = 0, nil
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: w.now})
}

// edit changes the set as a user does, and returns the set before.
func (w *jobSetWorld) edit(change func(*jobsetv1alpha2.JobSet)) (before *jobsetv1alpha2.JobSet) {
	before, w.js = w.js, w.js.DeepCopy()
	change(w.js)
	w.js.Generation++
	w.did = deeds{}
	return before
}

// names are the names of all Jobs.
func (w *jobSetWorld) names() []string { return slices.Sorted(maps.Keys(w.jobs)) }

func resume(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(false) }

func restarts(js *jobsetv1alpha2.JobSet) {
	js.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: 3}
}

func size(n int32) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		job := &js.Spec.ReplicatedJobs[1].Template.Spec
		job.Parallelism, job.Completions = ptr.To(n), ptr.To(n)
	}
}

func annotate(key, value string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) { metav1.SetMetaDataAnnotation(&js.ObjectMeta, key, value) }
}

func annotated(key string) func(*batchv1.Job) bool {
	return func(job *batchv1.Job) bool {
		return job.Annotations[key] != "" || job.Spec.Template.Annotations[key] != ""
	}
}

func selectNodes(js *jobsetv1alpha2.JobSet) {
	for i := range js.Spec.ReplicatedJobs {
		js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
	}
}

func onSelectedNodes(job *batchv1.Job) bool {
	return job.Spec.Template.Spec.NodeSelector["zone"] == "a"
}

// state expects the set in a terminal state, "" for none.
func state(want string) func(*testing.T, *jobSetWorld) {
	return func(t *testing.T, w *jobSetWorld) {
		t.Helper()
		if w.js.Status.TerminalState != want {
			t.Errorf("the state of the set is %q: want %q", w.js.Status.TerminalState, want)
		}
	}
}
