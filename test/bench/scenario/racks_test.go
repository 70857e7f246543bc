// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
)

func TestJobsOfPlaceFollowTheNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes, racks, jobs int
	}{
		"all":                 {2000, 125, 125},
		"more nodes":          {4000, 250, 125},
		"fewer nodes":         {1000, 62, 62},
		"a rack is not full":  {1007, 62, 62},
		"one rack of 16 only": {16, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			sizes := Full()
			sizes.PlaceNodes = tc.nodes
			if racks, jobs := sizes.placedRacks(), sizes.placedJobs(); racks != tc.racks || jobs != tc.jobs {
				t.Errorf("%d racks and %d Jobs, want %d and %d", racks, jobs, tc.racks, tc.jobs)
			}
		})
	}
}

func TestNodesOfPlaceBesideUpstream(t *testing.T) {
	sizes := FullBesideUpstream()
	racks, jobs := sizes.placedRacks(), sizes.placedJobs()
	if sizes.PlaceNodes != 500 || racks != 50 || jobs != 50 || sizes.PlacePods > sizes.PlaceRackNodes {
		t.Errorf("%d nodes, %d racks, %d Jobs of %d pods", sizes.PlaceNodes, racks, jobs, sizes.PlacePods)
	}
	s := &space{runner: &runner{Env: &Env{Cluster: &cluster.Cluster{Dir: "upstream", Upstream: true}, Beside: true}}, name: "bench"}
	js := s.placedSet(placeExclusive, jobs, sizes.PlacePods)
	want := map[string]string{"alpha.jobset.sigs.k8s.io/exclusive-topology": benchRackKey}
	if d := cmp.Diff(want, js.Annotations); d != "" {
		t.Errorf("annotations of the set, by which upstream's webhooks know it (-want +got):\n%s", d)
	}
	if mode := js.Spec.ReplicatedJobs[0].Template.Spec.CompletionMode; mode == nil || *mode != batchv1.IndexedCompletion {
		t.Errorf("completion mode %v: upstream's webhooks refuse pods without an index", mode)
	}
}

func TestModesOfJobsOfUpstreamAreNotChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		upstream bool
		mode     placeMode
		want     bool
	}{
		"our programs, in another mode": {false, placeExclusive, false},
		"our programs, in the mode":     {false, placeWithout, true},
		"upstream":                      {true, placeExclusive, true},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := &tracker[*batchv1.Job]{objects: map[string]*batchv1.Job{"train-workers-0": {}}}
			env := &Env{Sizes: Sizes{PlaceNodes: 4, PlaceRackNodes: 4, PlaceJobs: 1}, Cluster: &cluster.Cluster{Upstream: tc.upstream}}
			s := &space{runner: &runner{Env: env}, jobs: jobs}
			if err := s.checkModes(tc.mode); (err == nil) != tc.want {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestScheduledPods(t *testing.T) {
	condition := func(status corev1.ConditionStatus) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.PodScheduled, Status: status},
		}}
	}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"new":           {corev1.Pod{}, false},
		"waits":         {corev1.Pod{Status: condition(corev1.ConditionFalse)}, false},
		"scheduled":     {corev1.Pod{Status: condition(corev1.ConditionTrue)}, true},
		"being deleted": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}, Status: condition(corev1.ConditionTrue)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podScheduled(&tc.pod); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestModeOfAJob(t *testing.T) {
	selected := corev1.PodSpec{
		NodeSelector: map[string]string{benchPoolKey: benchPool, benchRackKey: "rack-1"}, Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
	}
	attracted := corev1.PodSpec{NodeSelector: map[string]string{benchPoolKey: benchPool}, Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}}
	for name, tc := range map[string]struct {
		pod  corev1.PodSpec
		mode placeMode
		want bool
	}{
		"a rack":                   {selected, placeExclusive, true},
		"a rack is no affinity":    {selected, placeAffinity, false},
		"affinity":                 {attracted, placeAffinity, true},
		"affinity is no rack":      {attracted, placeExclusive, false},
		"neither, without":         {corev1.PodSpec{}, placeWithout, true},
		"neither is not exclusive": {corev1.PodSpec{}, placeExclusive, false},
		"neither is no affinity":   {corev1.PodSpec{}, placeAffinity, false},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: tc.pod}}}
			if got := hasMode(job, tc.mode); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
