// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// TestReleasedChildrenAreLeftAlone: an administrator has taken the owner off the children of a set (jobset-apiserver
// store release-orphans), and the set is there: its store is back, or a user has created a set of that name.
func TestReleasedChildrenAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSet())
		r.run(t)
		eventually(t, "both Jobs exist", func() bool { return r.jobExists(t, "js-w-0") && r.jobExists(t, "js-w-1") })
		release := func(object metav1.Object) { object.SetOwnerReferences([]metav1.OwnerReference{}) }
		service, err := r.kube.CoreV1().Services("ns").Get(t.Context(), "js", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		release(service)
		if _, err := r.kube.CoreV1().Services("ns").Update(t.Context(), service, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"js-w-0", "js-w-1"} {
			job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			release(job)
			if _, err := r.kube.BatchV1().Jobs("ns").Update(t.Context(), job, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r.kube.ClearActions()
		eventually(t, "the set says that the names are taken", func() bool {
			return meta.IsStatusConditionTrue(r.set(t).Status.Conditions, jobsetv1alpha2.ChildNameConflict)
		})

		// Nor does the set touch them at its end.
		body := []byte(`{"metadata":{"generation":2},"spec":{"suspend":true}}`)
		if _, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Patch(t.Context(), "js", types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the set is suspended", func() bool {
			return meta.IsStatusConditionTrue(r.set(t).Status.Conditions, jobsetv1alpha2.JobSetSuspended)
		})
		for _, request := range r.requests() {
			if !strings.HasPrefix(request, "create jobs ") && !strings.HasPrefix(request, "create services ") {
				t.Errorf("the controller asks for %q", request)
			}
		}
		for _, name := range []string{"js-w-0", "js-w-1"} {
			job, err := r.kube.BatchV1().Jobs("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(job.OwnerReferences) > 0 || ptr.Deref(job.Spec.Suspend, false) {
				t.Errorf("job %s: %v, owners %v, suspended: %v", name, err, job.OwnerReferences, job.Spec.Suspend)
			}
		}
	})
}
