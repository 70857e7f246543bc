// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	versionedfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

// rig is a controller with clients that keep what they are given.
type rig struct {
	*Controller
	kube    *fake.Clientset
	client  *versionedfake.Clientset
	events  *recorder
	watches *informers.Watches

	mu sync.Mutex
	// writes are the requests of all clients that change something, in their order.
	writes []string
}

func newRig(t *testing.T, sj *batchv1alpha1.SequentialJob, jobs ...runtime.Object) *rig {
	t.Helper()
	return newRigAt(t, clock.RealClock{}, sj, jobs...)
}

// newRigAt returns a rig with a clock.
func newRigAt(t *testing.T, now clock.PassiveClock, sj *batchv1alpha1.SequentialJob, jobs ...runtime.Object) *rig {
	t.Helper()
	r := &rig{kube: fake.NewClientset(jobs...), client: versionedfake.NewClientset(sj), events: &recorder{}}
	r.kube.PrependReactor("*", "*", r.record)
	r.client.PrependReactor("*", "*", r.record)
	r.client.PrependReactor("update", "sequentialjobs", r.checkVersion)
	factory := informers.NewFactory(r.kube)
	kind := factory.For(Name)
	var err error
	r.Controller, err = New(Config{
		Client: r.client, Kube: r.kube, Informers: kind, Recorder: r.events, Clock: now, Workers: 2, Dynamic: noWorkloads(),
	})
	if err == nil {
		r.watches, err = factory.Build(kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func noWorkloads() dynamic.Interface { return dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()) }

func (r *rig) record(action clientgotesting.Action) (bool, runtime.Object, error) {
	line := action.GetVerb() + " " + action.GetResource().Resource
	if action.GetSubresource() != "" {
		line += "/" + action.GetSubresource()
	}
	switch a := action.(type) {
	case clientgotesting.CreateAction:
		line += " " + a.GetObject().(metav1.Object).GetName()
	case clientgotesting.DeleteActionImpl:
		line += fmt.Sprintf(" %s %s %s", a.GetName(), *a.DeleteOptions.PropagationPolicy, *a.DeleteOptions.Preconditions.UID)
	case clientgotesting.PatchAction:
		line += " " + a.GetName() + " " + string(a.GetPatch())
	}
	if slices.Contains([]string{"create", "update", "patch", "delete"}, action.GetVerb()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.writes = append(r.writes, line)
	}
	return false, nil, nil
}

// checkVersion refuses updates of outdated versions, and counts the others, as a server does.
func (r *rig) checkVersion(action clientgotesting.Action) (bool, runtime.Object, error) {
	next := action.(clientgotesting.UpdateAction).GetObject().(*batchv1alpha1.SequentialJob)
	stored, err := r.client.Tracker().Get(action.GetResource(), next.Namespace, next.Name)
	if err != nil {
		return true, nil, err
	}
	version := stored.(*batchv1alpha1.SequentialJob).ResourceVersion
	if version != next.ResourceVersion {
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), next.Name, errRefused)
	}
	n, err := strconv.Atoi(version)
	next.ResourceVersion = strconv.Itoa(n + 1)
	return err != nil, nil, err
}

// written returns the writes since it was asked last.
func (r *rig) written() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.writes = nil }()
	return r.writes
}

// refuse makes an API answer requests with an error.
func refuse(client interface {
	PrependReactor(verb, resource string, reaction clientgotesting.ReactionFunc)
}, verb, resource string, err error) {
	client.PrependReactor(verb, resource, func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// cached puts what the APIs hold into the caches.
func (r *rig) cached(t *testing.T) {
	t.Helper()
	sj, err := r.client.BatchV1alpha1().SequentialJobs("ns").Get(t.Context(), "etl", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := r.kube.BatchV1().Jobs("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var owned []any
	for i := range jobs.Items {
		if jobs.Items[i].Labels[batchv1alpha1.SequentialJobUIDKey] == "" {
			continue
		}
		kid, err := transform(&jobs.Items[i])
		if err != nil {
			t.Fatal(err)
		}
		owned = append(owned, kid)
	}
	if err := r.caches.jobs.GetIndexer().Replace(owned, "0"); err != nil {
		t.Fatal(err)
	}
	if err := r.caches.sequentialJobs.GetIndexer().Replace([]any{sj}, "0"); err != nil {
		t.Fatal(err)
	}
	r.deps.Consistency.Forget(key)
}

// syncs makes passes on current caches.
func (r *rig) syncs(t *testing.T, n int) error {
	t.Helper()
	var err error
	for range n {
		r.cached(t)
		_, err = r.Sync(t.Context(), key)
	}
	r.cached(t)
	return err
}

var key = cache.NewObjectName("ns", "etl")

func newSequence(change ...func(*batchv1alpha1.SequentialJob)) *batchv1alpha1.SequentialJob {
	sj := &batchv1alpha1.SequentialJob{
		ObjectMeta: metav1.ObjectMeta{Name: "etl", Namespace: "ns", UID: "uid-etl", ResourceVersion: "1", Generation: 1},
		Spec:       batchv1alpha1.SequentialJobSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}, {Name: "b", Image: "b"}}},
		Status:     batchv1alpha1.SequentialJobStatus{StepsGeneration: 1},
	}
	for _, c := range change {
		c(sj)
	}
	return sj
}

// started is a sequence whose first step runs.
func started(sj *batchv1alpha1.SequentialJob) {
	sj.Finalizers = []string{"other", batchv1alpha1.SequentialJobFinalizer}
	sj.Status.Progress.CurrentIndex = ptr.To[int32](0)
	sj.Status.Steps = []batchv1alpha1.SequentialJobStepStatus{{
		Name: "a", Kind: batchv1alpha1.StepKindJob, ChildName: "etl-0", ChildUID: "uid-0", State: batchv1alpha1.StepRunning, Attempts: 1,
	}}
}

func deleted(sj *batchv1alpha1.SequentialJob) {
	sj.DeletionTimestamp = &metav1.Time{Time: time.Now()}
}

// jobOf returns the Job of the first step.
func jobOf(sj *batchv1alpha1.SequentialJob) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "etl-0", Namespace: "ns", UID: "uid-0"}}
	job.Labels = map[string]string{batchv1alpha1.SequentialJobUIDKey: string(sj.UID), batchv1alpha1.StepAttemptKey: "1"}
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sj, batchv1alpha1.SchemeGroupVersion.WithKind("SequentialJob"))}
	return job
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

var _ events.EventRecorder = &recorder{}

func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ref, err := reference.GetReference(scheme.Scheme, regarding); err != nil || ref.Kind != "SequentialJob" || ref.Name == "" || ref.UID == "" {
		reason = fmt.Sprintf("%s about %v (%v)", reason, ref, err)
	}
	r.events = append(r.events, fmt.Sprintf("%s %s ", eventType, reason)+fmt.Sprintf(note, args...))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
