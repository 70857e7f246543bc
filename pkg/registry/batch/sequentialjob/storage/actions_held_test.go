// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/actions"
)

// held is what the controller makes of a sequence whose child is gone after the store was restored.
func held(sj *batch.SequentialJob) {
	sj.Status.Conditions = append(sj.Status.Conditions, metav1.Condition{
		Type: "Held", Status: metav1.ConditionTrue, Reason: "RestoredFromBackup", LastTransitionTime: metav1.NewTime(begin),
	})
}

func isHeld(sj *batch.SequentialJob) bool {
	return meta.IsStatusConditionTrue(sj.Status.Conditions, "Held")
}

func TestActionsOnHeldSequences(t *testing.T) {
	spec := &batch.SequentialJobActionSpec{}
	for name, tc := range map[string]struct {
		state string
		act   func(*batch.SequentialJob, *batch.SequentialJobActionSpec, actions.Call) (*batch.SequentialJobActionStatus, error)
		want  string
		// wantHeld and wantSuspended are of the sequence afterwards.
		wantHeld, wantSuspended bool
	}{
		"resume":                           {state: "running", act: actions.Resume, want: `the SequentialJob was resumed in attempt 2 of step "train"`},
		"resume of one that was suspended": {state: "suspended", act: actions.Resume, want: `the SequentialJob was resumed in attempt 2 of step "train"`},
		"suspend":                          {state: "running", act: actions.Suspend, want: `the SequentialJob was suspended in attempt 2 of step "train"`, wantHeld: true, wantSuspended: true},
		"restart":                          {state: "running", act: actions.Restart, want: "the SequentialJob is held, because the store was restored from a backup; resume it instead", wantHeld: true},
		"cancel":                           {state: "running", act: actions.Cancel, want: `the SequentialJob was cancelled in attempt 2 of step "train"`},
	} {
		t.Run(name, func(t *testing.T) {
			sj := nightly(states[tc.state], held)
			answer, err := tc.act(sj, spec, call())
			got := text(err)
			if err == nil {
				got = answer.Message
			}
			if !strings.Contains(got, tc.want) || isHeld(sj) != tc.wantHeld || ptr.Deref(sj.Spec.Suspend, false) != tc.wantSuspended {
				t.Errorf("%q, held %t, suspended %v", got, isHeld(sj), sj.Spec.Suspend)
			}
		})
	}
	sj := nightly(states["running"], held)
	edited := nightly(states["running"], held)
	sj.Spec.Suspend = ptr.To(true)
	actions.RecordEdit(edited, sj, call())
	if isHeld(edited) || !isHeld(sj) {
		t.Errorf("after an edit that resumes the sequence: held %t, and before %t", isHeld(edited), isHeld(sj))
	}
}
