// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/placer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

const rackLabel = "example.com/rack"

// world is a cluster with racks, in which the controller's placer and plan decide about sets, one after the other.
type world struct {
	full placement.WhenFull
	// objects are the objects of the cluster, nodes and pods among them.
	objects []runtime.Object
	nodes   map[string]*corev1.Node
	// earlier are the sets that are placed before the one that is explained.
	earlier []*jobsetv1alpha2.JobSet
	js      *jobsetv1alpha2.JobSet
	// says is what the scheduler says of the pods of the set.
	says string
	// later is what happens after the set was placed.
	later func(*world)
	// forgotten is whether the events are gone, and forbidden a resource that the controller may not list.
	forgotten bool
	forbidden string

	jobs   []*batchv1.Job
	events []plan.Event
}

// newWorld returns a cluster with so many racks of two nodes, and a set that is to be placed.
func newWorld(racks int, changes ...func(*world)) *world {
	w := &world{full: placement.WhenFullWait, nodes: map[string]*corev1.Node{}, says: "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules."}
	for rack := range racks {
		for n := range 2 {
			w.node(fmt.Sprintf("r%d", rack), fmt.Sprintf("r%d-%d", rack, n))
		}
	}
	w.js = w.set("train", 1, 2)
	for _, change := range changes {
		change(w)
	}
	return w
}

func amounts(cpu, memory string, pods int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
	}
}

// node adds a node with room for two pods of a set.
func (w *world) node(rack, name string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{rackLabel: rack}},
		Status: corev1.NodeStatus{
			Allocatable: amounts("8", "32Gi", 20), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	w.objects, w.nodes[name] = append(w.objects, node), node
	return node
}

// set returns a set with exclusive placement, whose pods request half a node each.
func (w *world) set(name string, jobs, pods int32) *jobsetv1alpha2.JobSet {
	js := builders.JobSet(name, builders.WithJobs("workers", jobs, pods))
	js.Namespace, js.UID, js.Generation, js.CreationTimestamp = "team", types.UID("uid-"+name), 1, before(10*time.Minute)
	js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: rackLabel}
	spec := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	spec.Containers = []corev1.Container{{Name: "main", Image: "trainer:v1", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")},
	}}}
	return js
}

// pod adds a running pod with a request of CPU.
func (w *world) pod(name, node, cpu string, labels map[string]string) {
	w.objects = append(w.objects, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: name, UID: types.UID(name), Labels: labels},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	})
}

// decide places the earlier sets and then the set, and creates its Jobs.
func (w *world) decide(t *testing.T) {
	t.Helper()
	synctest.Test(t, w.decideInBubble)
}

func (w *world) decideInBubble(t *testing.T) {
	kube := kubefake.NewClientset(w.objects...)
	if w.forbidden != "" {
		(&env{}).refuses(&kube.Fake, w.forbidden, forbidden(w.forbidden))
	}
	clock := testclock.NewFakeClock(now)
	var placed []*jobsetv1alpha2.JobSet
	p := placer.New(placer.Config{
		Kube: kube, Clock: clock, WhenFull: w.full, Wake: func(cache.ObjectName) {},
		Placed: func() ([]*jobsetv1alpha2.JobSet, error) { return placed, nil },
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { stop(); <-done }()
	for _, js := range w.earlier {
		w.place(t, p, clock, js)
		if js.Status.Placement == nil {
			t.Fatalf("the set %s has no domains: %+v", js.Name, js.Status.Conditions)
		}
		placed = append(placed, js)
	}
	w.jobs = w.place(t, p, clock, w.js)
}

// place decides about a set until its status says what became of it, and returns the Jobs that are created after that.
func (w *world) place(t *testing.T, p *placer.Placer, clock *testclock.FakeClock, js *jobsetv1alpha2.JobSet) []*batchv1.Job {
	t.Helper()
	o := plan.Observed{JobSet: js, Gates: gates.Gates{ExclusivePlacement: true}, KeepAttempts: true, Now: metav1.NewTime(now), ServiceExists: true,
		Restored: hostplan.None[plan.Restored]()}
	for deadline := time.Now().Add(time.Minute); o.Placed.Open(); time.Sleep(time.Millisecond) {
		placed, err := p.Place(t.Context(), js, plan.Decide(o).Asks.Unplaced)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("placing %s: %v", js.Name, err)
		}
		if placed != nil {
			o.Placed = hostplan.Of(*placed)
		}
		if w.forbidden != "" {
			clock.Step(time.Second) // the controller says so only after a while
		}
	}
	decided := plan.Decide(o)
	if decided.Status != nil {
		js.Status = *decided.Status
	}
	w.events = decided.Events
	p.Withdraw(cache.MetaObjectToName(js))
	o.Placed = hostplan.NotObtained[domains.Placed]()
	return plan.Decide(o).CreateJobs
}

// report is what the plugin says about the set, from what it reads in the cluster.
func (w *world) report(t *testing.T) *Report {
	t.Helper()
	w.decide(t)
	if w.later != nil {
		w.later(w)
	}
	e := &Evidence{JobSet: w.js, Leases: healthy().Leases}
	e.Leases[0].Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	for _, job := range w.jobs {
		job.UID, job.Namespace, job.CreationTimestamp = types.UID("uid-"+job.Name), "team", before(10*time.Minute)
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))}
		e.Jobs = append(e.Jobs, job)
		for index := range *job.Spec.Parallelism {
			e.Pods = append(e.Pods, w.pending(job, index))
		}
	}
	for _, event := range w.events {
		if !w.forgotten {
			warns("JobSet", w.js.UID, event.Reason, event.Note)(e)
			e.Events[len(e.Events)-1].InvolvedObject.Name = w.js.Name
		}
	}
	cluster := newEnv(t, e)
	for _, object := range w.objects {
		if err := cluster.kube.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return Diagnose(cluster.load(t))
}

// pending is a pod of a Job for which the scheduler finds no node.
func (w *world) pending(job *batchv1.Job, index int32) *corev1.Pod {
	pod := childPod(job)
	pod.Name = fmt.Sprintf("%s-%d-abcde", job.Name, index)
	pod.UID, pod.Labels, pod.Spec = types.UID("uid-"+pod.Name), maps.Clone(job.Spec.Template.Labels), *job.Spec.Template.Spec.DeepCopy()
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: w.says, LastTransitionTime: before(time.Minute),
	}}}
	return pod
}
