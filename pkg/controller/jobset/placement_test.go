// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	jobsetfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

// waitsSince makes a pod wait since a time, on the node if preemption makes room there.
func waitsSince(since time.Time, node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		unscheduled("Unschedulable", "full since "+since.Format(time.TimeOnly))(pod)
		pod.Status.Conditions[0].LastTransitionTime, pod.Status.NominatedNodeName = metav1.NewTime(since), node
	}
}

func TestWaitingPodsByJob(t *testing.T) {
	r := newRig(t, newSet())
	first := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for _, pod := range []*corev1.Pod{
		podOfJob("js-w-0-0-abcde", "u0", waitsSince(first.Add(time.Minute), "")),
		podOfJob("js-w-0-1-abcde", "u0", waitsSince(first, "")),
		podOfJob("js-w-0-2-abcde", "u0"),
		podOfJob("js-w-1-0-abcde", "u1", waitsSince(first.Add(time.Minute), "node")),
		podOfJob("js-w-2-0-abcde", "u2"),
	} {
		if err := r.caches.pods.GetIndexer().Add(watched(t, pod)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.caches.Waiting(cache.NewObjectName("ns", "js"))
	diff(t, "error", "", errorText(err))
	diff(t, "waiting", map[types.UID]domains.Waiting{
		"u0": {Since: first, Reason: "full since 03:02:01"},
		"u1": {Since: first.Add(time.Minute), Nominated: true, Reason: "full since 03:03:01"},
	}, got)
}

func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSet())
		if got := r.caches.Priorities(); got != nil {
			t.Errorf("without exclusive placement: %v", got)
		}
		r.build(t, gates.Gates{ExclusivePlacement: true})
		defer r.end()
		if got := r.caches.Priorities(); got != nil {
			t.Errorf("before the cache is filled: %v", got)
		}
		r.watches.Start(t.Context())
		eventually(t, "the cache is filled", r.caches.priorities.HasSynced)
		diff(t, "without classes", map[string]int32{"": 0}, r.caches.Priorities())
		for _, class := range []*schedulingv1.PriorityClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 10},
			{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 7, GlobalDefault: true},
			{ObjectMeta: metav1.ObjectMeta{Name: "usual-too"}, Value: 8, GlobalDefault: true},
		} {
			if err := r.caches.priorities.GetIndexer().Add(class); err != nil {
				t.Fatal(err)
			}
		}
		diff(t, "priorities", map[string]int32{"": 7, "high": 10, "usual": 7, "usual-too": 8}, r.caches.Priorities())
	})
}

// TestPrioritiesAreOptional has a controller that may not watch PriorityClasses. It runs, and knows no priorities.
func TestPrioritiesAreOptional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{kube: fake.NewClientset(), jobSets: jobsetfake.NewClientset(), events: &recorder{}}
		r.kube.Resources = []*metav1.APIResourceList{{GroupVersion: jobsetv1alpha2.SchemeGroupVersion.String()}}
		r.build(t, gates.Gates{ExclusivePlacement: true})
		defer r.end()
		answer := error(apierrors.NewForbidden(schema.GroupResource{Resource: "priorityclasses"}, "", errors.New("no")))
		r.kube.PrependReactor("list", "priorityclasses", func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
		r.watches.Start(t.Context())
		synctest.Wait()
		if len(r.Informers.Unfilled()) == 0 {
			t.Error("the controller would run although the API server may have just started, and Jobs would be created without their priority")
		}
		time.Sleep(permission.LacksAfter + 10*time.Second)
		if unfilled := r.Informers.Unfilled(); len(unfilled) > 0 {
			t.Errorf("caches that are waited for: %v", unfilled)
		}
		if got := r.caches.Priorities(); got != nil {
			t.Errorf("priorities: %v", got)
		}
		answer = apierrors.NewServiceUnavailable("away")
		time.Sleep(time.Minute)
		if got := r.caches.Priorities(); got != nil {
			t.Errorf("priorities while the API is away: %v", got)
		}
	})
}

// scripted is a placer that answers what it is given, and remembers the questions.
type scripted struct {
	noPlacer
	asked     []domains.Stuck
	withdrawn int
	answer    domains.Moving
	err       error
}

func (s *scripted) Withdraw(cache.ObjectName) { s.withdrawn++ }

func (s *scripted) Move(_ context.Context, _ *jobsetv1alpha2.JobSet, stuck []domains.Stuck) (domains.Moving, error) {
	s.asked = stuck
	return s.answer, s.err
}

// TestObserveMoves asks where a Job goes whose pods wait.
func TestObserveMoves(t *testing.T) {
	js := newSet()
	js.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
	js.Status.Placement = &jobsetv1alpha2.Placement{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJobPlacement{
		{Name: "w", TopologyKey: "rack", Jobs: []jobsetv1alpha2.JobPlacement{{Domain: "a"}, {Domain: "b"}}},
	}}
	r := newRig(t, js)
	r.build(t, gates.Gates{ExclusivePlacement: true})
	job := newJob("js-w-0", js)
	job.UID = "u0"
	for key, value := range map[string]string{jobsetv1alpha2.ReplicatedJobNameKey: "w", jobsetv1alpha2.JobIndexKey: "0", jobsetv1alpha2.RestartsKey: "0"} {
		job.Labels[key] = value
	}
	placer := &scripted{answer: domains.Moving{After: time.Minute}}
	r.deps.Placer = placer
	pod := podOfJob(job.Name+"-0-abcde", "u0", waitsSince(time.Now(), ""))
	for _, err := range []error{
		r.caches.jobSets.GetIndexer().Add(js), r.caches.jobs.GetIndexer().Add(job), r.caches.pods.GetIndexer().Add(watched(t, pod)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	obs, _, _, err := r.Decided(t.Context(), cache.MetaObjectToName(js))
	diff(t, "error", "", errorText(err))
	if len(placer.asked) != 1 || placer.asked[0].UID != "u0" || placer.asked[0].At.Domain != "a" {
		t.Errorf("asked about %+v", placer.asked)
	}
	diff(t, "when to look again", time.Minute, obs.Moving.Value().After)
	placer.err = errors.New("no")
	_, _, _, err = r.Decided(t.Context(), cache.MetaObjectToName(js))
	diff(t, "error", "no", errorText(err))
}

// TestFreesDomain shows which changes of a placement are news for sets that wait.
func TestFreesDomain(t *testing.T) {
	racks := func(jobs ...jobsetv1alpha2.JobPlacement) *jobsetv1alpha2.Placement {
		return &jobsetv1alpha2.Placement{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJobPlacement{{Name: "w", TopologyKey: "rack", Jobs: jobs}}}
	}
	a, b := jobsetv1alpha2.JobPlacement{Domain: "a"}, jobsetv1alpha2.JobPlacement{Domain: "b"}
	zones := racks(a)
	zones.ReplicatedJobs[0].TopologyKey = "zone"
	for name, tc := range map[string]struct {
		was, is *jobsetv1alpha2.Placement
		want    bool
	}{
		"nothing changes":            {racks(a, b), racks(a, b), false},
		"a Job becomes ready":        {racks(a, b), racks(jobsetv1alpha2.JobPlacement{Domain: "a", Ready: true}, b), false},
		"Jobs change places":         {racks(a, b), racks(b, a), false},
		"a Job comes":                {racks(a), racks(a, b), false},
		"a Job goes":                 {racks(a, b), racks(a), true},
		"a Job moves":                {racks(a), racks(b), true},
		"a Job is located":           {racks(a, jobsetv1alpha2.JobPlacement{}), racks(a, b), false},
		"domains are of another key": {racks(a), zones, true},
	} {
		t.Run(name, func(t *testing.T) { diff(t, "frees a domain", tc.want, freesDomain(tc.was, tc.is)) })
	}
}
