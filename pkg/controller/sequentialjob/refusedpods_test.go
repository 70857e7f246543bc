// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
)

// TestRefusedPodsOfEachJob has a Job in the way of the current one. The API refuses pods of both, for different reasons.
func TestRefusedPodsOfEachJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sj := newSequence(started)
		current, other := jobOf(sj), jobOf(sj)
		other.Name, other.UID = "etl-1", "uid-1"
		refused := func(job *batchv1.Job, why string) *corev1.Event {
			return &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: job.Name + ".1"}, Reason: reasons.FailedCreate, LastTimestamp: metav1.Now(),
				Message:        `Error creating: pods "` + job.Name + `-x" is forbidden: ` + why,
				InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: "ns", Name: job.Name, UID: job.UID},
			}
		}
		r := newRig(t, sj, current, other, refused(current, "exceeded quota: q"), refused(other, `User "c" cannot create resource "pods"`))
		refuse(r.kube, "delete", "jobs", errRefused) // the other one stays
		r.run(t)
		synctest.Wait()
		obs, _, err := r.Observe(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range obs.Children {
			if c.Refused != nil {
				got[c.Name] = c.Refused.Reason
			}
		}
		diff(t, "what is refused", map[string]string{"etl-0": reasons.QuotaExceeded, "etl-1": reasons.Forbidden}, got)
		if obs.PodsRefusedSince.IsZero() {
			t.Error("it is not known since when pods are refused")
		}
	})
}
