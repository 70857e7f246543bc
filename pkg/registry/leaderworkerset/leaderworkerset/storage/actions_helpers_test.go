// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/actions"
)

const prefix = `Operation cannot be fulfilled on leaderworkersets.leaderworkerset.x-k8s.io "llm": `

var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
	// stored is now as it is stored.
	stored = metav1.NewMicroTime(now.Truncate(time.Microsecond))
)

func call() actions.Call { return actions.Call{User: "alice", Now: now} }

func later(user string, after time.Duration) actions.Call {
	return actions.Call{User: user, Now: now.Add(after)}
}

// llm is a set of four groups of two pods, with the image of the generation.
func llm(change ...func(*leaderworkerset.LeaderWorkerSet)) *leaderworkerset.LeaderWorkerSet {
	set := &leaderworkerset.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ml", UID: "uid-1", Generation: 3}}
	set.Spec = leaderworkerset.LeaderWorkerSetSpec{
		Replicas:      ptr.To[int32](4),
		StartupPolicy: leaderworkerset.StartupPolicyLeaderCreated,
		LeaderWorkerTemplate: leaderworkerset.LeaderWorkerTemplate{
			GroupSize: ptr.To[int32](2), RestartPolicy: leaderworkerset.RestartPolicyRecreateGroupOnPodRestart,
			WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "serve", Image: "v3"}}}},
		},
		NetworkConfig:        &leaderworkerset.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkerset.SubdomainShared)},
		RevisionHistoryLimit: ptr.To[int32](5),
	}
	set.Status.ObservedGeneration = 3
	for _, f := range change {
		f(set)
	}
	return set
}

func image(name string) func(*leaderworkerset.LeaderWorkerSet) {
	return func(set *leaderworkerset.LeaderWorkerSet) {
		set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = name
	}
}

// revision is what the controller keeps of a set.
func revision(t *testing.T, number int64, set *leaderworkerset.LeaderWorkerSet) appsv1.ControllerRevision {
	t.Helper()
	var v1 leaderworkersetv1.LeaderWorkerSet
	if err := leaderworkersetv1.Convert_leaderworkerset_LeaderWorkerSet_To_v1_LeaderWorkerSet(set, &v1, nil); err != nil {
		t.Fatal(err)
	}
	data, err := helper.RevisionPayload(&v1)
	if err != nil {
		t.Fatal(err)
	}
	return raw(number, set.UID, data)
}

func raw(number int64, owner types.UID, data []byte) appsv1.ControllerRevision {
	return appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}},
		Revision:   number, Data: runtime.RawExtension{Raw: data},
	}
}

func generation(n int64) *batch.LeaderWorkerSetPreconditions {
	return &batch.LeaderWorkerSetPreconditions{Generation: &n}
}

func other() *batch.LeaderWorkerSetPreconditions {
	return &batch.LeaderWorkerSetPreconditions{UID: ptr.To(types.UID("uid-0"))}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func deleting(set *leaderworkerset.LeaderWorkerSet) {
	set.DeletionTimestamp = ptr.To(metav1.NewTime(now))
}
