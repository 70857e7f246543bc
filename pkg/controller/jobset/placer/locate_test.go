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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// TestLocate has the scheduler choose domains that come later: they are known by the nodes of pods, and the next attempt prefers them.
func TestLocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullAffinity)
		js := e.set("js", 2, 0)
		js.Spec.ReplicatedJobs[0].Template.Spec.Parallelism = ptr.To[int32](4)
		landed := func(nodes ...string) (out []domains.Unlocated) {
			for index, node := range nodes {
				out = append(out, domains.Unlocated{Index: int32(index), UID: types.UID(fmt.Sprint("uid-", index)), Topology: rack, Node: node})
			}
			return out
		}
		if got := e.Locate(js, landed("q-0", "p-0")); got.Domains != nil || got.After != watchedAfter {
			t.Errorf("while nodes are not known: %+v", got)
		}
		js = e.written(js, e.await(js, " "))
		cordoned := node("q", 2)
		cordoned.Spec.Unschedulable = true
		for _, object := range []*corev1.Node{node("p", 0), node("p", 1), node("q", 0), node("q", 1), cordoned, node("r", 0), node("r", 1)} {
			if _, err := e.kube.CoreV1().Nodes().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		e.eventually(func() bool { return len(e.watch.Current().nodes.List()) == 7 })
		got := e.Locate(js, landed("q-0", "r-1"))
		for index, want := range []string{"q", "r"} {
			if at := got.Domains[types.UID(fmt.Sprint("uid-", index))]; at.Domain != want || at.Nodes != 2 {
				t.Errorf("Job %d is at %+v, want %s with 2 nodes", index, at, want)
			}
			js.Status.Placement.ReplicatedJobs[0].Jobs[index].Domain = want
		}
		if later := e.Locate(js, landed("x-0", "r-0")); len(later.Domains) != 1 || later.After != 10*time.Second {
			t.Errorf("a node that is not known: %+v", later)
		}
		js.Status.Restarts = 1
		js.Status.Placement.Restarts = 0
		e.store(js)
		e.await(js, "q r")
	})
}
