// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
