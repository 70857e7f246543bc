// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// TestTimeToLiveEndsInAFullStore refuses deletions in the foreground, as a full store does, and wants one in the background.
func TestTimeToLiveEndsInAFullStore(t *testing.T) {
	set := newSet()
	r := newRig(t, set)
	var got []metav1.DeletionPropagation
	r.jobSets.PrependReactor("delete", "jobsets", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		options := action.(clientgotesting.DeleteActionImpl).GetDeleteOptions()
		got = append(got, *options.PropagationPolicy)
		if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != set.UID {
			t.Errorf("preconditions are %v", options.Preconditions)
		}
		if *options.PropagationPolicy == metav1.DeletePropagationForeground {
			return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage"}}
		}
		return true, nil, nil
	})
	if err := r.apply(t, set, plan.Plan{DeleteJobSet: true}); err != nil {
		t.Fatal(err)
	}
	diff(t, "deletions", []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground}, got)
}
