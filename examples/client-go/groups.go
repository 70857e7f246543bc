// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

const groupsName = "example-groups"

// groups creates a LeaderWorkerSet and waits until it is available. The Go field of "size" is GroupSize: the code that encodes messages
// as protobuf gives each type a method Size, and a field cannot have the name of a method.
func (e *example) groups(ctx context.Context) error {
	sets := e.client.LeaderworkersetV1().LeaderWorkerSets(e.namespace)
	_, err := sets.Create(ctx, &leaderworkersetv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Name: groupsName},
		Spec: leaderworkersetv1.LeaderWorkerSetSpec{
			Replicas: ptr.To[int32](2),
			LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
				GroupSize: ptr.To[int32](2),
				WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "main", Image: "busybox:1.37", Command: []string{"sleep", "3600"}}},
				}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	var set *leaderworkersetv1.LeaderWorkerSet
	err = wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		set, err = sets.Get(ctx, groupsName, metav1.GetOptions{})
		return err == nil && meta.IsStatusConditionTrue(set.Status.Conditions, leaderworkersetv1.ConditionAvailable), err
	})
	if err != nil {
		return fmt.Errorf("waiting until %s is available: %w", groupsName, err)
	}
	fmt.Printf("%s has %d groups of %d pods\n", groupsName, set.Status.ReadyReplicas, *set.Spec.LeaderWorkerTemplate.GroupSize)
	return nil
}
