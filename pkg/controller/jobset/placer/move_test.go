// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// stuck returns Jobs of a placed set whose pods have got no nodes since a time ago.
func (e *env) stuck(js *jobsetv1alpha2.JobSet, ago time.Duration, indexes ...int32) (out []domains.Stuck) {
	for _, index := range indexes {
		out = append(out, domains.Stuck{
			Waiting: domains.Waiting{Since: e.clock.Now().Add(-ago)}, Index: index, Topology: rack, At: js.Status.Placement.ReplicatedJobs[0].Jobs[index],
		})
	}
	return out
}

// move asks where Jobs go, and returns it with the time after which to ask again.
func (e *env) move(js *jobsetv1alpha2.JobSet, stuck []domains.Stuck) string {
	e.Helper()
	got, err := e.Move(e.Context(), js, stuck)
	if err != nil {
		e.Fatal(err)
	}
	if got.Move == nil {
		return fmt.Sprint("again after ", got.After)
	}
	return fmt.Sprintf("%d to %s", got.Move.Index, got.Move.Domain)
}

func (e *env) want(what, want, got string) {
	e.Helper()
	if want != got {
		e.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// hog is a pod without a set that fills a node.
func hog(on string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "hog-" + on}}
	pod.Spec.NodeName = on
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: node("x", 0).Status.Allocatable}}}
	delete(pod.Spec.Containers[0].Resources.Requests, corev1.ResourcePods)
	return pod
}

// TestMove has another pod take the room of a Job.
func TestMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0), node("c", 0))
		js := e.set("js", 2, 0)
		js = e.written(js, e.await(js, "a b"))
		e.want("a moment later", "again after 4m0s", e.move(js, e.stuck(js, time.Minute, 0)))
		e.want("two Jobs", "again after 1m0s", e.move(js, e.stuck(js, 4*time.Minute, 0, 1)))
		nominated := e.stuck(js, time.Hour, 0)
		nominated[0].Nominated = true
		e.want("preemption makes room", "again after 0s", e.move(js, nominated))
		e.want("nobody is stuck", "again after 0s", e.move(js, nil))

		e.want("in time", "0 to c", e.move(js, e.stuck(js, 5*time.Minute, 0, 1)))
		e.Withdraw(e.key(js)) // the pass that stores the move waits for no domain
		other := e.set("other", 1, 1)
		if _, got := e.ask(other); got != "NoDomain" {
			t.Errorf("another set gets %q before the move is stored", got)
		}
		e.want("if it was not stored", "1 to c", e.move(js, e.stuck(js, 5*time.Minute, 1)))
		e.Forget(e.key(js))
		if len(e.moving)+len(e.stayed) > 0 {
			t.Errorf("remembered of a set that is gone: %v, %v", e.moving, e.stayed)
		}
	})
}

// TestMoveWhileTheCacheLags has a set be looked at again while the cache still shows its status from before the move, which may be stored.
func TestMoveWhileTheCacheLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0), node("c", 0))
		js := e.set("js", 2, 0)
		js = e.written(js, e.await(js, "a b"))
		js.ResourceVersion = "7"
		e.want("in time", "0 to c", e.move(js, e.stuck(js, 5*time.Minute, 0)))
		other := e.set("other", 1, 1)
		for range 3 {
			e.clock.Step(time.Minute)
			e.want("the cache shows no pod that waits", "again after 0s", e.move(js, nil))
			if _, got := e.ask(other); got != "NoDomain" {
				t.Errorf("another set gets %q while the cache lags", got)
			}
			e.want("the cache shows the same", "0 to c", e.move(js, e.stuck(js, 5*time.Minute, 0)))
		}
		js = js.DeepCopy()
		js.ResourceVersion = "8"
		e.want("the status is another one", "again after 0s", e.move(js, nil))
		e.await(other, "c")
	})
}

// TestMoveNeedsRoom has a Job stay for lack of a domain, until there is one.
func TestMoveNeedsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullAffinity, node("a", 0), node("b", 0), hog("b-0"))
		js := e.set("js", 1, 0)
		js = e.written(js, e.await(js, "a"))
		late := func() []domains.Stuck { return e.stuck(js, 10*time.Minute, 0) }
		e.want("no domain has room", "again after 1m0s", e.move(js, late()))
		e.clock.Step(20 * time.Second)
		e.want("a little later", "again after 40s", e.move(js, late()))
		e.clock.Step(time.Minute)
		e.want("nothing has happened", "again after 1m0s", e.move(js, late()))
		if err := e.kube.CoreV1().Pods("other").Delete(t.Context(), "hog-b-0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		e.eventually(func() bool { return e.move(js, late()) == "0 to b" })
	})
}

// TestMoveAvoidsWhatItLeft goes where the Job has not been before, and back only if nothing else has room.
func TestMoveAvoidsWhatItLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0), node("c", 0))
		js := e.set("js", 1, 0)
		js = e.written(js, e.await(js, "a"))
		at := &js.Status.Placement.ReplicatedJobs[0].Jobs[0]
		at.Domain = "b"
		at.Moves = &jobsetv1alpha2.JobMoves{Left: []string{"a"}, LastTime: &metav1.Time{Time: e.clock.Now().Add(-9 * time.Minute)}}
		e.store(js)
		e.want("the time doubles", "again after 1m0s", e.move(js, e.stuck(js, time.Hour, 0)))
		at.Moves.LastTime = &metav1.Time{Time: e.clock.Now().Add(-time.Hour)}
		e.want("where it has not been", "0 to c", e.move(js, e.stuck(js, time.Hour, 0)))
		at.Moves.Left = []string{"a", "c"}
		e.want("where it has been", "0 to a", e.move(js, e.stuck(js, time.Hour, 0)))
	})
}

// TestMoveWaitsForNodes has a domain gain nodes, or nodes of it become of use.
func TestMoveWaitsForNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tainted := node("a", 1)
		tainted.Spec.Taints = []corev1.Taint{{Key: "example.com/driver", Effect: corev1.TaintEffectNoSchedule}}
		e := newEnv(t, placement.WhenFullWait, node("a", 0), tainted, node("b", 0), node("b", 1))
		js := e.set("js", 1, 0)
		js = e.written(js, e.await(js, "a"))
		late := func() []domains.Stuck { return e.stuck(js, time.Hour, 0) }
		young := node("a", 2)
		young.CreationTimestamp = metav1.NewTime(e.clock.Now().Add(-time.Minute))
		nodes := e.kube.CoreV1().Nodes()
		if _, err := nodes.Create(t.Context(), young, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		e.eventually(func() bool { return e.move(js, late()) == "again after 4m0s" })
		young.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(e.clock.Now())}}
		if _, err := nodes.Update(t.Context(), young, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		e.eventually(func() bool { return e.move(js, late()) == "again after 5m0s" })
		e.clock.Step(5 * time.Minute)
		e.want("later", "0 to b", e.move(js, late()))
		tainted.Spec.Taints = nil
		if _, err := nodes.Update(t.Context(), tainted, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		e.eventually(func() bool { return e.move(js, late()) == "again after 5m0s" })
		for _, name := range []string{"a-1", "a-2"} {
			if err := nodes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		e.eventually(func() bool { return e.move(js, late()) == "0 to b" })
	})
}

// TestMoveComesAfterThoseThatWait frees a domain for which a set waits.
func TestMoveComesAfterThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0))
		js, first := e.set("js", 1, 0), e.set("first", 1, 1)
		js = e.written(js, e.await(js, "a"))
		first = e.written(first, e.await(first, "b"))
		waits := e.set("waits", 1, 2)
		e.await(waits, "NoDomain")
		first.Status.Placement = nil
		e.store(first)
		e.Freed()
		e.want("the domain goes to the set that waits", "again after 1m0s", e.move(js, e.stuck(js, time.Hour, 0)))
		e.awaitWoken("waits")
		e.await(waits, "b")
	})
}

// TestMoveOfBadTemplate leaves a Job alone whose template cannot be read.
func TestMoveOfBadTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0))
		js := e.set("js", 1, 0)
		js = e.written(js, e.await(js, "a"))
		js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a b", Operator: "Unknown"}},
			}}},
		}}
		e.want("the Job", "again after 1m0s", e.move(js, e.stuck(js, time.Hour, 0)))
	})
}

// TestSingleRestart restarts one Job of a set: it returns to its domain, unless that has lost a node which the pods need.
func TestSingleRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("a", 1), node("b", 0), node("b", 1), node("c", 0), node("c", 1))
		js := e.set("js", 2, 0)
		js.Spec.ReplicatedJobs[0].Template.Spec.Parallelism = ptr.To[int32](4)
		js = e.written(js, e.await(js, "a b"))
		again := func(restarts int32) string {
			e.Helper()
			placed, err := e.Place(t.Context(), js, []domains.Unplaced{{Topology: rack, Indexes: []int32{1}, Restarts: []int32{restarts}}})
			if err != nil || placed == nil || placed.Placement == nil {
				t.Fatalf("got %+v, %v", placed, err)
			}
			js = e.written(js, placed)
			jobs := js.Status.Placement.ReplicatedJobs[0].Jobs
			return fmt.Sprint(jobs[0].Domain, " ", jobs[0].Restarts, ", ", jobs[1].Domain, " ", jobs[1].Restarts)
		}
		e.want("after one restart", "a 0, b 1", again(1))
		if err := e.kube.CoreV1().Nodes().Delete(t.Context(), "b-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		e.eventually(func() bool { return len(e.watch.Current().nodes.List()) == 5 })
		e.want("when a node is lost", "a 0, c 2", again(2))
	})
}
