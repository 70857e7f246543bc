// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/podgroup/plan"
)

// TestLabelsRemovedByOthers removes the label of a pod whenever it has it. The other pod keeps its own.
func TestLabelsRemovedByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newGroup(2), newPod("a", inGroup(0)), newPod("b", inGroup(0)))
		key := plan.Prefixes[0].ReadyKey
		for range 5 * 60 * 10 {
			r.pass(100 * time.Millisecond)
			if len(r.labeled(0)) == 2 {
				r.change("a", func(pod *corev1.Pod) { delete(pod.Labels, key) })
			}
		}
		diff(t, "labels that are set in five minutes", 6, count(r.kube.Actions(), "patch", "pods"))
		diff(t, "labeled pods", []string{"b"}, r.labeled(0))
		const want = "label batch.jobset-apiserver.io/pod-group-ready cannot be set on pod a: another party removed or changed the label batch.jobset-apiserver.io/pod-group-ready of pod a 3 times"
		if c := r.ready(); !strings.Contains(c.Message, want) {
			t.Errorf("the condition: %s", c.Message)
		}
	})
}
