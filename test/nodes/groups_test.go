// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// TestGroupsRun runs two groups of three pods. kube-apiserver asks our server in its pod about each of them.
func TestGroupsRun(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	lws := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "serve"}, Spec: leaderworkersetv1.LeaderWorkerSetSpec{
		Replicas: ptr.To[int32](2),
		LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
			GroupSize: ptr.To[int32](3),
			WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](1), Containers: []corev1.Container{{Name: "main", Image: localcluster.ProgramImage}},
			}},
		},
	}}
	sets := jobsets.LeaderworkersetV1().LeaderWorkerSets(e.namespace)
	if _, err := sets.Create(t.Context(), lws, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the groups are available", func(ctx context.Context) error {
		lws, err := sets.Get(ctx, "serve", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(lws.Status.Conditions, leaderworkersetv1.ConditionAvailable) {
			return fmt.Errorf("conditions are %+v", lws.Status.Conditions)
		}
		return nil
	})
	pods, err := core.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: leaderworkersetv1.SetNameLabelKey + "=serve"})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 6 {
		t.Errorf("%d pods, want 6", len(pods.Items))
	}
	for _, pod := range pods.Items {
		if first := pod.Spec.Containers[0].Env[0].Name; first != "LWS_LEADER_ADDRESS" {
			t.Errorf("the environment of %s begins with %s", pod.Name, first)
		}
	}
}
