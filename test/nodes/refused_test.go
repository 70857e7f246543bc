// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// TestPodsReturnWhileTheStoreIsRefused deletes a worker of a LeaderWorkerSet while the only server refuses its store, so that it is not
// ready. No other test runs at the time: the sets of all of them are away.
func TestPodsReturnWhileTheStoreIsRefused(t *testing.T) {
	tier.OnRequest(t, "refuses the store that other tests use")
	e := newEnv(t)
	lws := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "serve"}, Spec: leaderworkersetv1.LeaderWorkerSetSpec{
		Replicas: ptr.To[int32](1),
		LeaderWorkerTemplate: leaderworkersetv1.LeaderWorkerTemplate{
			GroupSize: ptr.To[int32](2), RestartPolicy: leaderworkersetv1.RestartPolicyNone,
			WorkerTemplate: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "main", Image: localcluster.ProgramImage}},
			}},
		},
	}}
	sets := jobsets.LeaderworkersetV1().LeaderWorkerSets(e.namespace)
	if _, err := sets.Create(t.Context(), lws, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	available := func(ctx context.Context) error {
		lws, err := sets.Get(ctx, "serve", metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(lws.Status.Conditions, leaderworkersetv1.ConditionAvailable) {
			err = fmt.Errorf("conditions are %+v", lws.Status.Conditions)
		}
		return err
	}
	framework.Eventually(t, "the group is available", available)
	store := refuseStore(e)

	pods := core.CoreV1().Pods(e.namespace)
	worker, err := pods.Get(t.Context(), "serve-0-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), worker.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(worker.UID))}); err != nil {
		t.Fatal(err)
	}
	deleted := time.Now()
	framework.Eventually(t, "the worker is back", func(ctx context.Context) error {
		next, err := pods.Get(ctx, worker.Name, metav1.GetOptions{})
		if err == nil && (next.UID == worker.UID || next.Status.Phase != corev1.PodRunning) {
			err = fmt.Errorf("UID %s, phase %s", next.UID, next.Status.Phase)
		}
		if err == nil && next.Spec.Containers[0].Env[0].Name != "LWS_LEADER_ADDRESS" {
			t.Errorf("the environment begins with %s", next.Spec.Containers[0].Env[0].Name)
		}
		return err
	})
	t.Logf("the worker runs again %s after its deletion", time.Since(deleted).Round(time.Second/10))
	if _, err := sets.Get(t.Context(), "serve", metav1.GetOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("the store is served: %v", err)
	}
	store.accept()
	framework.Eventually(t, "the group is served again", available)
}

// refusedStore is a store that the server refuses, because the record names another one.
type refusedStore struct {
	*env
	uuid string
}

// refuseStore makes the record name another store than the server has, and starts the server again, until the test ends.
func refuseStore(e *env) *refusedStore {
	e.Helper()
	records := core.CoreV1().ConfigMaps(witness.Namespace)
	record, err := records.Get(e.Context(), witness.Name, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	s := &refusedStore{e, record.Data["uuid"]}
	e.Cleanup(s.accept)
	s.name(e.Context(), "00000000-0000-4000-8000-000000000000")
	framework.Eventually(e, "the server refuses its store", func(ctx context.Context) error {
		record, err := records.Get(ctx, witness.Name, metav1.GetOptions{})
		if err == nil && record.Data["refusal"] == "" {
			err = fmt.Errorf("the record is %v", record.Data)
		}
		return err
	})
	return s
}

// accept undoes refuseStore.
func (s *refusedStore) accept() {
	if s.uuid == "" {
		return
	}
	ctx := context.WithoutCancel(s.Context())
	s.name(ctx, s.uuid)
	s.uuid = ""
	framework.Eventually(s, "the store is served", func(context.Context) error {
		_, err := jobsets.JobsetV1alpha2().JobSets(s.namespace).List(ctx, metav1.ListOptions{})
		return err
	})
}

// name changes which store the record names, and replaces the pod of the server.
func (s *refusedStore) name(ctx context.Context, uuid string) {
	s.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]any{"uuid": uuid, "refusal": nil}})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := core.CoreV1().ConfigMaps(witness.Namespace).Patch(ctx, witness.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	if err := core.CoreV1().Pods(apiservice.Namespace).Delete(ctx, "jobset-apiserver-0", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
}
