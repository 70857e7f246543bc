// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestLostNodeHoldsPods has pods on a lost node that were deleted. The commands by which an administrator lets go of
// them are suggested only where they help.
func TestLostNodeHoldsPods(t *testing.T) {
	running := func(*corev1.Pod) {}
	terminating := func(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(before(5 * time.Second)) }
	lostNode := func(taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{
			Spec:   corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}}},
		}
	}
	release := []string{
		"kubectl taint nodes node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute  # if it is powered off and will be back",
		"kubectl delete node node-1  # if it is powered off and will not be back",
	}
	for name, tc := range map[string]struct {
		pod  func(*corev1.Pod)
		node *corev1.Node
		want bool
	}{
		"the pods were not deleted":   {running, lostNode(), false},
		"the pods are held":           {terminating, lostNode(), true},
		"the node is gone":            {terminating, nil, false},
		"the node was marked already": {terminating, lostNode(corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}), false},
	} {
		t.Run(name, func(t *testing.T) {
			report := Diagnose(healthy(pods(tc.pod), func(e *Evidence) { e.Nodes["node-1"] = tc.node }))
			if len(report.Findings) == 0 || report.Findings[0].Cause != NodeLost {
				t.Fatalf("findings are %+v", report.Findings)
			}
			f := report.Findings[0]
			for _, command := range release {
				if slices.Contains(f.Commands, command) != tc.want {
					t.Errorf("the command %q is suggested: %t, want %t", command, !tc.want, tc.want)
				}
			}
			held := slices.ContainsFunc(f.Evidence, func(fact Fact) bool {
				return fact.Object == object("node", "node-1") && strings.HasPrefix(fact.Text, "2 pods are terminating until the node is back, is deleted, or has the taint")
			})
			if held != tc.want {
				t.Errorf("evidence is %+v, names the pods that stay: %t, want %t", f.Evidence, held, tc.want)
			}
		})
	}
}
