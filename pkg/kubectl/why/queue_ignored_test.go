// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

func TestQueueIgnored(t *testing.T) {
	queued := func(e *Evidence) { e.JobSet.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"} }
	for name, tc := range map[string]struct {
		changes []func(*Evidence)
		want    bool
	}{
		"no queue":           {},
		"Kueue is absent":    {changes: []func(*Evidence){queued}, want: true},
		"Kueue is installed": {changes: []func(*Evidence){queued, func(e *Evidence) { e.Kueue.Served = true }}},
		"the set waits":      {changes: []func(*Evidence){queued, func(e *Evidence) { e.JobSet.Spec.Suspend = ptr.To(true) }}},
	} {
		t.Run(name, func(t *testing.T) {
			notes := Diagnose(healthy(tc.changes...)).Notes
			if got := slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "runs without quota") }); got != tc.want {
				t.Errorf("got %t, want %t: %q", got, tc.want, notes)
			}
		})
	}
}
