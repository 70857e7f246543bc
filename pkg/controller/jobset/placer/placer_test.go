// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// TestOneSetAfterTheOther shows that what is given to a set is kept from others before and after its status says so,
// and that sets which wait are woken when domains are free again.
func TestOneSetAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0), node("c", 0))
		first, second := e.set("first", 2, 0), e.set("second", 2, 1)
		given := e.await(first, "a b")
		if _, got := e.ask(second); got != "NoDomain" {
			t.Fatalf("while the domains of the other set are only given: %q", got)
		}
		if again, _ := e.ask(first); again.Placement != given.Placement {
			t.Error("the answer to the same question has changed")
		}
		first = e.written(first, given)
		placed, got := e.ask(second)
		if got != "NoDomain" {
			t.Fatalf("when the status of the other set holds its domains: %q", got)
		}
		const want = `2 jobs of replicatedJob "w", with 2 pods each, each need a domain of "example.com/rack"`
		if !strings.HasPrefix(placed.Message, want[:20]) || !strings.Contains(placed.Message, "ns/first: 2") {
			t.Errorf("the message is %q", placed.Message)
		}
		ended := first.DeepCopy()
		ended.Status.Placement = nil
		e.store(ended)
		e.Freed()
		e.awaitWoken("second")
		e.await(second, "a b")
	})
}

// TestNewNodesWakeWhoWaits adds the node that is missing.
func TestNewNodesWakeWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0))
		js := e.set("js", 2, 0)
		e.await(js, "NoDomain")
		if _, err := e.kube.CoreV1().Nodes().Create(t.Context(), node("b", 0), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		e.awaitWoken("js")
		e.await(js, "a b")
	})
}

// TestTheSchedulerChoosesWhenFull shows that a set for which there are not enough domains need not wait.
func TestTheSchedulerChoosesWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullAffinity, node("a", 0))
		placed := e.await(e.set("js", 2, 0), " ")
		if placed.Reason != "NoDomain" || placed.Message == "" {
			t.Errorf("why the scheduler chooses is %q, %q", placed.Reason, placed.Message)
		}
	})
}

// TestRestartKeepsTheDomains places the Jobs of the next attempt of a set, whose pods have gone, while another set waits.
func TestRestartKeepsTheDomains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0))
		js := e.set("js", 2, 1)
		js = e.written(js, e.await(js, "a b")).DeepCopy()
		older := e.set("older", 1, 0)
		e.await(older, "NoDomain")
		js.Status.Restarts = 1
		e.store(js)
		if placed, got := e.ask(js); got != "a b" || placed.Placement.Restarts != 1 {
			t.Errorf("after the restart: %q for attempt %d", got, placed.Placement.Restarts)
		}
	})
}

// TestJobsThatNeedNoDomainHaveNoPlace places one of two replicatedJobs while the Jobs of the other run, and nothing says where: a place
// without a domain would mean that the scheduler chooses it, and the priority of its pods would be 0.
func TestJobsThatNeedNoDomainHaveNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0))
		js := e.set("js", 1, 0)
		other := *js.Spec.ReplicatedJobs[0].DeepCopy()
		other.Name = "running"
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, other)
		placed := e.await(js, "a").Placement
		if len(placed.ReplicatedJobs) != 1 || placed.ReplicatedJobs[0].Name != "w" {
			t.Errorf("the placement has %+v, want only the replicatedJob that asked", placed.ReplicatedJobs)
		}
	})
}

// TestPodsTakeDomains shows that pods of other sets, and those that fill a node, are seen.
func TestPodsTakeDomains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := func(name, node, cpu string, labels map[string]string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}, Spec: corev1.PodSpec{
				NodeName: node,
				Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
				}}},
			}}
		}
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0), node("c", 0),
			pod("other", "a-0", "100m", map[string]string{jobsetv1alpha2.JobSetNameKey: "other", jobsetv1alpha2.JobKey: "key"}),
			pod("large", "b-0", "1500m", nil))
		e.await(e.set("js", 1, 0), "c")
	})
}

// TestUnwatched says why nodes and pods are not known.
func TestUnwatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait)
		started := make(chan struct{})
		watch := e.watch.(*informers.OnDemand[view])
		watch.Declare = func() func(*informers.Kind) *view {
			declare := watch.Declare
			return func(kind *informers.Kind) *view {
				<-started
				return declare(kind)
			}
		}()
		defer close(started)
		js := e.set("js", 1, 0)
		if _, got := e.ask(js); got != "unknown" {
			t.Fatalf("at first: %q", got)
		}
		e.clock.Step(watchedAfter)
		e.awaitWoken("js")
		if placed, got := e.ask(js); got != "NodesUnknown" || !strings.HasPrefix(placed.Message, "nodes and pods are not known yet") {
			t.Errorf("later: %q, %v", got, placed)
		}
	})
}

// TestUnknownMessage names what is missing, and ends properly if nothing is.
func TestUnknownMessage(t *testing.T) {
	for want, unfilled := range map[string][]string{
		"nodes and pods are not known yet":                                         nil,
		"nodes and pods are not known yet: pods":                                   {"pods"},
		"nodes and pods are not known yet: nodes (nodes is forbidden), daemonsets": {"nodes (nodes is forbidden)", "daemonsets"},
	} {
		if got := unknownMessage(unfilled); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// The watches do not run.
	p := New(Config{Clock: testclock.NewFakeClock(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)), Wake: func(cache.ObjectName) {}})
	w := &waiting{asked: p.Clock.Now().Add(-watchedAfter)}
	if got, want := p.unwatched(w).Message, "nodes and pods are not known yet"; got != want {
		t.Errorf("before the watches begin: %q, want %q", got, want)
	}
}

// TestRequest shows what a set asks for.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait)
		js := e.set("js", 3, 0)
		js.Annotations[jobsetv1alpha2.PlacementLevelsKey] = " block, rack,,"
		second := *js.Spec.ReplicatedJobs[0].DeepCopy()
		second.Name, second.Template.Spec.Completions = "v", ptr.To[int32](1)
		second.DependsOn = []jobsetv1alpha2.DependsOn{{Name: "w", Status: jobsetv1alpha2.DependencyComplete}, {Name: "gone"}}
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, second)
		e.await(e.set("fills", 0, 0), "")
		got, err := e.watch.Current().requestOf(js, []domains.Unplaced{{Place: 0, Topology: rack, Indexes: []int32{1}}, {Place: 1, Topology: rack, Indexes: []int32{0, 2}}})
		if err != nil {
			t.Fatal(err)
		}
		levels := []placement.Name{placement.NameOf("block"), placement.NameOf("rack")}
		if !slices.Equal(levels, got.Levels) {
			t.Errorf("levels: %v", got.Levels)
		}
		if g := got.Groups[0]; len(g.Jobs) != 1 || g.Jobs[0].Index != 1 || g.Pods != 2 {
			t.Errorf("first group: %+v", g)
		}
		if g := got.Groups[1]; len(g.Jobs) != 2 || g.Jobs[1].Index != 5 || g.Pods != 1 || !slices.Equal(g.DependsOn, []placement.Dependency{{Group: 0, Complete: true}}) {
			t.Errorf("second group: %+v", g)
		}
	})
}

// TestJobsWithoutPlacementKeepTheirDomains has pods of Jobs that were created without placement, such as before the
// feature was on: other Jobs get no domain in which they run, neither those of their set nor those of others.
func TestJobsWithoutPlacementKeepTheirDomains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := func(name, on string, index int32) *corev1.Pod {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{
					jobsetv1alpha2.JobSetNameKey: "js", jobsetv1alpha2.JobKey: helper.JobKey("ns", helper.JobName("js", "w", index)),
				}},
				Spec: corev1.PodSpec{NodeName: on},
			}
		}
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0), node("c", 0), node("d", 0), runs("js-w-0-0", "a-0", 0), runs("js-w-0-1", "c-0", 0))
		js, other := e.set("js", 2, 0), e.set("other", 2, 1)
		missing := []domains.Unplaced{{Topology: rack, Indexes: []int32{1}, Restarts: []int32{0}}}
		e.await(other, "b d")
		if placed, err := e.Place(t.Context(), js, missing); err != nil || placed.Placement != nil || !strings.Contains(placed.Message, "of 4 domains, 4 are taken by jobs (ns/js: 2, ns/other: 2)") {
			t.Errorf("without a free domain: %+v, %v", placed, err)
		}
		e.Forget(e.key(other))
		e.Freed()
		placed, err := e.Place(t.Context(), js, missing)
		if err != nil || placed.Placement == nil {
			t.Fatalf("with free domains: %+v, %v", placed, err)
		}
		want := []jobsetv1alpha2.JobPlacement{{}, {Domain: "b", Nodes: 1}}
		if diff := cmp.Diff(want, placed.Placement.ReplicatedJobs[0].Jobs); diff != "" {
			t.Errorf("Jobs of the set (-want +got):\n%s", diff)
		}
	})
}

// TestForbiddenNodes has a controller that may not watch nodes: a set waits in both modes and says which resource is
// missing, and is placed once the controller may.
func TestForbiddenNodes(t *testing.T) {
	for _, full := range []placement.WhenFull{placement.WhenFullWait, placement.WhenFullAffinity} {
		t.Run(string(full), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t, full, node("a", 0))
				var granted atomic.Bool
				e.kube.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
					if granted.Load() {
						return false, nil, nil
					}
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no RBAC policy matched"))
				})
				js := e.set("js", 1, 0)
				placed := e.await(js, "NodesUnknown")
				const want = "nodes and pods are not known yet: nodes (nodes is forbidden: no RBAC policy matched)"
				e.eventually(func() bool {
					e.clock.Step(newsAfter)
					placed, _ = e.ask(js)
					return placed.Message == want
				})
				granted.Store(true)
				e.awaitWoken("js")
				e.await(js, "a")
			})
		})
	}
}
