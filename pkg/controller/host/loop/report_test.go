// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/loop"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// sent keeps what events are about.
type sent struct{ regarding, related []string }

func (s *sent) Eventf(regarding, related runtime.Object, _, reason, action, _ string, _ ...any) {
	ref := regarding.(*corev1.ObjectReference)
	s.regarding = append(s.regarding, reason+" "+action+" "+ref.APIVersion+" "+ref.Kind+" "+ref.Name+"@"+ref.ResourceVersion)
	if related != nil {
		s.related = append(s.related, reason+" "+related.(*corev1.ObjectReference).Name)
	}
}

func TestReport(t *testing.T) {
	list := []plan.Event{
		{Type: corev1.EventTypeNormal, Reason: "Made", Action: "Create", Related: "pod"}, {Type: corev1.EventTypeWarning, Reason: "Refused"},
	}
	const made, refused = "Made Create jobset.x-k8s.io/v1alpha2 JobSet a@", "Refused Reconciling jobset.x-k8s.io/v1alpha2 JobSet a@"
	for name, tc := range map[string]struct {
		reports []loop.Report
		want    []string
	}{
		"transitions": {loop.Transitions(list), []string{made + "5", refused + "5"}},
		"series":      {loop.Series(list), []string{made, refused}},
		"steps":       {loop.Steps(list), []string{made + "5", refused}},
	} {
		t.Run(name, func(t *testing.T) {
			r, got := newRig(), &sent{}
			r.Recorder = got
			related := func(name string) *corev1.ObjectReference { return &corev1.ObjectReference{Name: name} }
			r.Report(t.Context(), newSet(), loop.Relate(tc.reports, related)...)
			if d := cmp.Diff(tc.want, got.regarding); d != "" {
				t.Errorf("events (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string{"Made pod"}, got.related); d != "" {
				t.Errorf("related (-want +got):\n%s", d)
			}
		})
	}
}
