// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// groupWithClaims is a group of two pods, each of which adds a line to the log of its volume when it starts.
func groupWithClaims(name string, whenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType) *leaderworkersetv1.LeaderWorkerSet {
	return &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: leaderworkersetv1.LeaderWorkerSetSpec{
		LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
			GroupSize: ptr.To[int32](2), VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim("data")},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: whenDeleted, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			},
			WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				InitContainers: []corev1.Container{{
					Name: "log", Image: localcluster.ProgramImage, Args: []string{"append", "/data/log", "any"},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}},
				Containers: []corev1.Container{{Name: "main", Image: localcluster.ProgramImage}},
			}},
		},
	}}
}

func (e *env) createGroup(lws *leaderworkersetv1.LeaderWorkerSet) {
	e.Helper()
	if _, err := jobsets.LeaderworkersetV1().LeaderWorkerSets(e.namespace).Create(e.Context(), lws, metav1.CreateOptions{}); err != nil {
		e.Fatal(err)
	}
}

// deleteGroup deletes a set and waits until its pods are gone.
func (e *env) deleteGroup(name string) {
	e.Helper()
	sets := jobsets.LeaderworkersetV1().LeaderWorkerSets(e.namespace)
	if err := sets.Delete(e.Context(), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		e.Fatal(err)
	}
	framework.Eventually(e, name+" is gone", func(ctx context.Context) error {
		if _, err := sets.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("get: %v", err)
		}
		pods, err := core.CoreV1().Pods(e.namespace).List(ctx, metav1.ListOptions{LabelSelector: leaderworkersetv1.SetNameLabelKey + "=" + name})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(pods.Items))
		}
		return err
	})
}

// TestClaimsOfGroups has two groups with a claim for each pod. One of them is recreated, deleted and created again, and
// finds what it has written each time; the claims of the other one are deleted with it.
func TestClaimsOfGroups(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createGroup(groupWithClaims("kept", appsv1.RetainPersistentVolumeClaimRetentionPolicyType))
	e.createGroup(groupWithClaims("dropped", appsv1.DeletePersistentVolumeClaimRetentionPolicyType))
	const kept = leaderworkersetv1.SetNameLabelKey + "=kept"

	before := map[string]bool{}
	for _, pod := range e.running(kept, 2) {
		before[string(pod.UID)] = true
	}
	if err := core.CoreV1().Pods(e.namespace).Delete(t.Context(), "kept-0-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the group is recreated", func(ctx context.Context) error {
		pods, err := e.pods(ctx, kept)
		if err != nil {
			return err
		}
		for i := range pods {
			if len(pods) != 2 || before[string(pods[i].UID)] || !runs(&pods[i]) {
				return fmt.Errorf("%d pods, %s is %s", len(pods), pods[i].Name, pods[i].Status.Phase)
			}
		}
		if len(pods) == 0 {
			return fmt.Errorf("there are no pods")
		}
		return nil
	})
	e.deleteGroup("kept")
	e.createGroup(groupWithClaims("kept", appsv1.RetainPersistentVolumeClaimRetentionPolicyType))
	e.running(kept, 2)
	e.holds(e.volumeOf("data-kept-0"), "kept-0", "kept-0", "kept-0")
	e.holds(e.volumeOf("data-kept-0-1"), "kept-0-1", "kept-0-1", "kept-0-1")

	e.running(leaderworkersetv1.SetNameLabelKey+"=dropped", 2)
	leader, worker := e.volumeOf("data-dropped-0"), e.volumeOf("data-dropped-0-1")
	e.holds(leader, "dropped-0")
	e.deleteGroup("dropped")
	e.gone("data-dropped-0", leader)
	e.gone("data-dropped-0-1", worker)
}
