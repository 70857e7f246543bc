// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestLanded finds nodes of Jobs whose domain the scheduler chooses.
func TestLanded(t *testing.T) {
	r := newRig(t, newSet())
	r.build(t, gates.Gates{ExclusivePlacement: true})
	exclusive := func(node, domain string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
			pod.Spec.NodeName = node
			if domain != "" {
				pod.Spec.NodeSelector = map[string]string{"rack": domain}
			}
		}
	}
	for _, pod := range []*corev1.Pod{
		podOfJob("js-w-0-0-abcde", "u0", exclusive("", "")),
		podOfJob("js-w-0-1-abcde", "u0", exclusive("n2", "")),
		podOfJob("js-w-0-2-abcde", "u0", exclusive("n1", "")),
		podOfJob("js-w-1-0-abcde", "u1", exclusive("", "")),
		podOfJob("js-w-2-0-abcde", "u2", exclusive("n3", "a")),
		podOfJob("js-w-3-0-abcde", "u3"),
	} {
		if err := r.caches.pods.GetIndexer().Add(watched(t, pod)); err != nil {
			t.Fatal(err)
		}
	}
	for job, want := range map[string]string{"u0": "n1", "u1": "", "u2": "", "u3": ""} {
		got, err := r.caches.Landed(types.UID(job))
		diff(t, "error", "", errorText(err))
		diff(t, "node of a pod of Job "+job, want, got)
	}
}
