// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestInvariantsDetectDuplicateJobs makes the mistakes that the other tests look for.
func TestInvariantsDetectDuplicateJobs(t *testing.T) {
	tier.Safety(t)
	l := newLife(t, rand.New(rand.NewPCG(0, 0))) //nolint:gosec // no choices
	jobs := shared.Kube.BatchV1().Jobs(l.namespace)
	create := func(name, attempt string) {
		t.Helper()
		_, err := jobs.Create(l.ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				jobsetv1alpha2.JobSetUIDKey: "set", jobsetv1alpha2.RestartsKey: attempt,
			}},
			Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
			}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		t.Helper()
		if err := jobs.Delete(l.ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
			t.Fatal(err)
		}
	}
	create("a", "0")
	create("b", "0")
	remove("a")
	create("a", "1")
	remove("b")
	create("b", "0")

	// The text in brackets lists random UIDs.
	for name, tc := range map[string]struct {
		jobs     int
		attempts int32
		want     []string
	}{
		"a Job twice and one not at all": {jobs: 2, attempts: 1, want: []string{
			"attempt 0: job b was created 2 times", "attempt 1: 1 Jobs were created, must be 2",
		}},
		"an attempt too many": {jobs: 2, attempts: 0, want: []string{
			"attempt \"1\": Jobs were created for it, the last attempt must be 0", "attempt 0: job b was created 2 times",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			sub := *l
			sub.T = t
			sub.poll("waiting for the violations", func() error {
				var got []string
				for _, problem := range sub.invariants.violations("set", tc.jobs, tc.attempts) {
					problem, _, _ = strings.Cut(problem, ": [")
					got = append(got, problem)
				}
				slices.Sort(got)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					return errDiff(diff)
				}
				return nil
			})
		})
	}
}

// errDiff is a difference between what was wanted and what came.
type errDiff string

func (e errDiff) Error() string { return string(e) }
