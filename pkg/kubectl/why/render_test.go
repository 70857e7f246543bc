// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

func TestRender(t *testing.T) {
	crashes := Diagnose(healthy(pods(crashing("ImagePullBackOff", 0)), func(e *Evidence) { e.NotLookedAt = []Gap{{"nodes", "forbidden"}} }))
	waits := Diagnose(healthy(notReadyYet, pods(func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: before(time.Hour),
			Message: "0/24 nodes are available: 4 node(s) had untolerated taint(s), 20 Insufficient nvidia.com/gpu. preemption: 0/24 nodes are available: 24 Preemption is not helpful for scheduling.",
		}}
	})))
	for _, width := range []int{0, 60, 100, 200} {
		for _, ascii := range []bool{false, true} {
			var out strings.Builder
			for _, report := range []*Report{crashes, waits} {
				if err := render(&out, cli.JobSet, report, cli.Terminal{Width: width, ASCII: ascii}, now); err != nil {
					t.Fatal(err)
				}
				out.WriteString("\n")
			}
			golden.Compare(t, fmt.Sprintf("why-%d.txt", width), out.String())
		}
	}
}

func TestEvidenceHangs(t *testing.T) {
	report := Diagnose(healthy(pods(crashing("ImagePullBackOff", 0))))
	for width := 30; width < 200; width++ {
		var out strings.Builder
		if err := render(&out, cli.JobSet, report, cli.Terminal{Width: width}, now); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if words := strings.Fields(line); cli.Columns(line) > width && len(words) > 2 && !strings.Contains(line, "kubectl") {
				t.Errorf("at width %d: a line of %d columns is not wrapped: %s", width, cli.Columns(line), line)
			}
			if strings.Contains(line, "…") {
				t.Errorf("at width %d: evidence is cut: %s", width, line)
			}
		}
	}
}
