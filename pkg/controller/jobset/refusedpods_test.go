// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestRefusedPodsShowInTheStatus has a quota that refuses the pod of a Job until it is raised.
func TestRefusedPodsShowInTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := newSet()
		refused, served := newJob("js-w-0", js), newJob("js-w-1", js)
		refused.UID, served.UID, served.Status.Active = "u0", "u1", 1
		for _, job := range []*batchv1.Job{refused, served} {
			job.Labels[jobsetv1alpha2.ReplicatedJobNameKey], job.Labels[jobsetv1alpha2.JobIndexKey] = "w", job.Name[len(job.Name)-1:]
			job.Labels[jobsetv1alpha2.RestartsKey] = "0"
		}
		r := newRig(t, js, refused, served)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		r.watches.Start(ctx)
		running.Go(func() { r.Run(ctx) })
		defer func() {
			cancel()
			running.Wait()
			time.Sleep(time.Minute)
			synctest.Wait()
		}()
		condition := func() string {
			stored, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Get(t.Context(), "js", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if c := meta.FindStatusCondition(stored.Status.Conditions, jobsetv1alpha2.PodCreationFailure); c != nil {
				return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
			return ""
		}
		wait := func(by time.Duration) {
			time.Sleep(by)
			synctest.Wait()
		}
		wait(time.Minute)
		diff(t, "without an event", "", condition())
		for _, uid := range []string{"u0", "u1"} {
			_, err := r.kube.CoreV1().Events("ns").Create(t.Context(), &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-w-" + uid[1:] + ".1"}, Reason: "FailedCreate",
				Message:        `Error creating: pods "js-w-0-0-abcde" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`,
				InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: "ns", Name: "js-w-" + uid[1:], UID: types.UID(uid)}, LastTimestamp: metav1.Now(),
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		wait(15 * time.Second)
		diff(t, "after 15 seconds", "True QuotaExceeded pods of 1 of 2 Jobs cannot be created: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1", condition())
		updates := r.statusWrites()
		wait(10 * time.Minute)
		diff(t, "writes of the status at rest", updates, r.statusWrites())

		refused = refused.DeepCopy()
		refused.Status.Active = 1
		if _, err := r.kube.BatchV1().Jobs("ns").UpdateStatus(t.Context(), refused, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		wait(15 * time.Second)
		diff(t, "when the quota was raised", "False PodsCreated no pods are refused", condition())
	})
}
