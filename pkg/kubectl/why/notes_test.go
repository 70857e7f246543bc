// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"strings"
	"testing"
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

func TestNoteOnExclusivePlacement(t *testing.T) {
	exclusive := map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
	selected := map[string]string{jobsetv1alpha2.ExclusiveKey: "rack", jobsetv1alpha2.NodeSelectorStrategyKey: "true"}
	cases := map[string]struct {
		change func(*jobsetv1alpha2.JobSet)
		want   bool
	}{
		"none":                               {change: func(*jobsetv1alpha2.JobSet) {}},
		"of the set":                         {change: func(js *jobsetv1alpha2.JobSet) { js.Annotations = exclusive }, want: true},
		"of a replicatedJob":                 {change: func(js *jobsetv1alpha2.JobSet) { js.Spec.ReplicatedJobs[0].Template.Annotations = exclusive }, want: true},
		"through node selectors":             {change: func(js *jobsetv1alpha2.JobSet) { js.Annotations = selected }},
		"with a controller that is not ours": {change: func(js *jobsetv1alpha2.JobSet) { js.Annotations, js.Status.Attempts = exclusive, nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Diagnose(healthy(set(tc.change)))
			var out bytes.Buffer
			if err := render(&out, cli.JobSet, r, cli.Terminal{}, time.Now()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), "note: exclusive placement"); got != tc.want {
				t.Errorf("noted: %v, want %v:\n%s", got, tc.want, out.String())
			}
		})
	}
}
