// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

func TestRoomOfNodesIsChecked(t *testing.T) {
	node := func(name string, pods string, unschedulable bool) *corev1.Node {
		n := &corev1.Node{ObjectMeta: objectMeta(name, ""), Spec: corev1.NodeSpec{Unschedulable: unschedulable}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
		return n
	}
	client := fake.NewClientset(node("a", "250", false), node("b", "250", false), node("c", "250", true), &corev1.Pod{ObjectMeta: objectMeta("other", "ns")})
	r := &runner{Env: &Env{Cluster: &cluster.Cluster{Kube: client}}}
	if err := r.checkRoom(t.Context(), 499); err != nil {
		t.Errorf("there is room: %v", err)
	}
	err := r.checkRoom(t.Context(), 500)
	if err == nil {
		t.Fatal("no error although there is no room for one pod of 500")
	}
	for _, want := range []string{"500 pods", "3 nodes have room for 500, of which 1 are taken", "CLUSTER_NODES"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, must contain %q", err, want)
		}
	}
}

func TestWaitsForManyJobsAreLongerUpToABound(t *testing.T) {
	r := &runner{Env: &Env{Timeout: 10 * time.Minute, Sizes: Full()}}
	for jobs, want := range map[int]time.Duration{
		400: 10*time.Minute + 200*time.Second, 10_000: 10*time.Minute + 5000*time.Second, 100_000: 10*time.Minute + 3*time.Hour,
	} {
		if got := r.sized(jobs); got.Timeout != want || got.Sizes.Jobs != jobs {
			t.Errorf("%d Jobs: timeout %v for %d Jobs, want %v", jobs, got.Timeout, got.Sizes.Jobs, want)
		}
	}
	if r.Timeout != 10*time.Minute || r.Sizes.Jobs != Full().Jobs {
		t.Errorf("the runner itself has changed: timeout %v, %d Jobs", r.Timeout, r.Sizes.Jobs)
	}
}

func TestCostOfEachIsThatOfTheLastRun(t *testing.T) {
	phase := &report.Phase{}
	for _, wall := range []float64{100, 8} {
		phase.Add("wall", report.UnitSeconds, wall)
		phase.Add("cpu/total", report.UnitSeconds, wall/2)
	}
	addEach(phase, "Job", 400)
	got := map[string]float64{}
	for _, f := range phase.Figures[2:] {
		got[f.Name] = phase.Last(f.Name)
	}
	if d := cmp.Diff(map[string]float64{"wall for each Job": 20, "CPU of all programs for each Job": 10}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
