// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	gangplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/gang/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

// rig is a controller with clients that keep what they are given, and that store it as an API server does once the
// controller runs.
type rig struct {
	*Controller
	kube    *fake.Clientset
	jobSets *jobsetfake.Clientset
	events  *recorder
	// dynamic is a client for groups of pods; nil for none.
	dynamic *dynamicfake.FakeDynamicClient
	gang    gangplan.Provider
	watches *informers.Watches
	// clock is the real one if it is nil.
	clock clock.PassiveClock
}

func newRig(t testing.TB, js *jobsetv1alpha2.JobSet, children ...runtime.Object) *rig {
	t.Helper()
	r := &rig{kube: fake.NewClientset(children...), jobSets: jobsetfake.NewClientset(js), events: &recorder{}}
	r.kube.Resources = []*metav1.APIResourceList{{GroupVersion: jobsetv1alpha2.SchemeGroupVersion.String()}}
	r.build(t, gates.Gates{})
	return r
}

// build makes the controller, and its informers, for feature gates. It replaces the controller that was built before.
func (r *rig) build(t testing.TB, gates gates.Gates) {
	t.Helper()
	r.end()
	factory := informers.NewFactory(r.kube)
	kind := factory.For(Name)
	now := r.clock
	if now == nil {
		now = clock.RealClock{}
	}
	var err error
	r.Controller, err = New(Config{
		JobSets: r.jobSets, Kube: r.kube, Dynamic: r.dynamic, Gang: r.gang, Informers: kind, Recorder: r.events, Clock: now, Gates: gates, Workers: 4,
	})
	if err == nil {
		r.watches, err = factory.Build(kind)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// end ends the goroutines of the queue, for which a bubble waits. A controller that runs ends them itself.
func (r *rig) end() {
	if r.Controller == nil {
		return
	}
	ended, end := context.WithCancel(context.Background())
	end()
	r.queue.Run(ended, 0, nil)
}

func (r *rig) apply(t *testing.T, js *jobsetv1alpha2.JobSet, p plan.Plan) error {
	t.Helper()
	_, err := r.carryOut(t.Context(), &plan.Observed{JobSet: js}, p)
	return err
}

// carryOut does what a sync does once it is decided.
func (r *rig) carryOut(ctx context.Context, obs *plan.Observed, p plan.Plan) (plan.Outcome, error) {
	results, err := r.Apply(ctx, obs, p)
	out := plan.Finish(*obs, p, results)
	return out, children.FirstErrors(err, r.Finish(ctx, r.Conclude(obs, out)))
}

// refuse makes the main API answer requests with an error.
func (r *rig) refuse(verb, resource, name string, err error) {
	r.kube.PrependReactor(verb, resource, func(action clientgotesting.Action) (bool, runtime.Object, error) {
		if named, ok := action.(clientgotesting.CreateAction); ok && name != "" {
			if object, ok := named.GetObject().(metav1.Object); !ok || object.GetName() != name {
				return false, nil, nil
			}
		}
		return true, nil, err
	})
}

// requests lists what was asked of the main API, reads left out.
func (r *rig) requests() []string {
	var out []string
	for _, action := range r.kube.Actions() {
		line := action.GetVerb() + " " + action.GetResource().Resource
		if action.GetSubresource() != "" {
			line += "/" + action.GetSubresource()
		}
		switch a := action.(type) {
		case clientgotesting.CreateAction:
			if object, ok := a.GetObject().(metav1.Object); ok {
				line += " " + object.GetName()
			}
		case clientgotesting.DeleteAction:
			line += " " + a.GetName()
		case clientgotesting.PatchAction:
			line += " " + a.GetName()
		default:
			continue
		}
		out = append(out, line)
	}
	return out
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

var _ events.EventRecorder = &recorder{}

func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ref, err := reference.GetReference(scheme.Scheme, regarding); err != nil || ref.Kind != "JobSet" || ref.Name == "" || ref.UID == "" {
		reason = fmt.Sprintf("%s about %v (%v)", reason, ref, err)
	}
	r.events = append(r.events, fmt.Sprintf("%s %s %s: ", eventType, reason, action)+fmt.Sprintf(note, args...))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

func newSet() *jobsetv1alpha2.JobSet {
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns", UID: "uid-js", ResourceVersion: "1"}}
	js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true)}
	js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
	js.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "w", Replicas: ptr.To[int32](2)}}
	return js
}

// newJob returns a Job as the plan would have it created.
func newJob(name string, owner *jobsetv1alpha2.JobSet) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", Labels: map[string]string{jobsetv1alpha2.JobSetNameKey: "js"},
	}}
	if owner != nil {
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))}
	}
	return job
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
