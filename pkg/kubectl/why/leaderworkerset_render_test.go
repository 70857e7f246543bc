// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// TestRenderGroups shows reports about LeaderWorkerSets on terminals of several widths.
func TestRenderGroups(t *testing.T) {
	report := func(change ...func(*leaderWorkerSetCluster)) *Report {
		c := runningLeaderWorkerSet()
		for _, f := range change {
			f(c)
		}
		return diagnoseLeaderWorkerSet(c.evidence())
	}
	reports := []*Report{
		report(updates, workerWaits(withoutNode("0/24 nodes are available: 4 node(s) had untolerated taint(s), 20 Insufficient nvidia.com/gpu.")), func(c *leaderWorkerSetCluster) {
			c.Set.Status.Conditions[0].LastTransitionTime, c.pods[2].CreationTimestamp = before(20*time.Minute), before(15*time.Minute)
		}),
		report(recreated(leaderworkersetv1.GroupStatus{Restarts: 3, Failed: true}), says("Failed", "MaxGroupRestartsExceeded", "Group 1 (3 restarts) has failed again; maxGroupRestarts is 3")),
		report(func(c *leaderWorkerSetCluster) { c.NotLookedAt = []Gap{{"nodes", "forbidden"}} }),
		report(lacksGroup, eventAbout("StatefulSet", "vllm-leaders", "FailedCreate",
			`create Pod vllm-1 in StatefulSet vllm failed error: Internal error occurred: failed calling webhook "mpod.kb.io": failed to call webhook: connection refused`)),
		report(workerWaits(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "registry.example/server:v2", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "ImagePullBackOff", Message: "Back-off pulling image"}}}}
		})),
	}
	for _, width := range []int{0, 60, 80, 120, 200} {
		var out strings.Builder
		for _, report := range reports {
			if err := render(&out, cli.LeaderWorkerSet, report, cli.Terminal{Width: width}, now); err != nil {
				t.Fatal(err)
			}
			out.WriteString("\n")
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if width > 0 && cli.Columns(line) > width && !strings.Contains(line, "kubectl") {
				t.Errorf("wider than %d columns: %q", width, line)
			}
		}
		golden.Compare(t, fmt.Sprintf("leaderworkerset-%d.txt", width), out.String())
	}
}
