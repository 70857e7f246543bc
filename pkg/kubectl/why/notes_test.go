// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

func TestNoteOnExclusivePlacement(t *testing.T) {
	exclusive := map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
	selected := map[string]string{jobsetv1alpha2.ExclusiveKey: "rack", jobsetv1alpha2.NodeSelectorStrategyKey: "true"}
	cases := map[string]struct {
		change func(*jobsetv1alpha2.JobSet)
		// want is in the note; empty for no note.
		want string
	}{
		"none":               {change: func(*jobsetv1alpha2.JobSet) {}},
		"of the set":         {change: func(js *jobsetv1alpha2.JobSet) { js.Annotations = exclusive }, want: "is ignored: it needs the feature gate ExclusivePlacement or"},
		"of a replicatedJob": {change: func(js *jobsetv1alpha2.JobSet) { js.Spec.ReplicatedJobs[0].Template.Annotations = exclusive }, want: "is ignored"},
		"without jobs that show whether the gate is on": {
			change: func(js *jobsetv1alpha2.JobSet) {
				js.Annotations, js.Spec.Suspend, js.Status.ReplicatedJobsStatus = exclusive, ptr.To(true), nil
			},
			want: "has an effect only with the feature gate ExclusivePlacement or",
		},
		"with domains": {change: func(js *jobsetv1alpha2.JobSet) {
			js.Annotations, js.Status.Placement = exclusive, &jobsetv1alpha2.Placement{}
		}},
		"left to Kueue": {change: func(js *jobsetv1alpha2.JobSet) {
			js.Annotations = exclusive
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{"kueue.x-k8s.io/podset-required-topology": "rack"}
		}},
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
			if strings.Contains(out.String(), "note: exclusive placement") != (tc.want != "") || !strings.Contains(out.String(), tc.want) {
				t.Errorf("the note is not %q:\n%s", tc.want, out.String())
			}
		})
	}
}
