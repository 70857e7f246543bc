// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

func TestNoteOnEndpoints(t *testing.T) {
	const want = "note: the controllers of the cluster, not jobset-controller, write the addresses of the Service: other JobSets use the Service js too; do it"
	by := has(jobsetv1alpha2.ServiceEndpointsByCluster, "ServiceShared", "other JobSets use the Service js\ntoo; do it")
	noMore := func(e *Evidence) {
		by(e)
		for i := range e.JobSet.Status.Conditions {
			e.JobSet.Status.Conditions[i].Status = metav1.ConditionFalse
		}
	}
	for name, tc := range map[string]struct {
		evidence *Evidence
		want     bool
	}{"none": {healthy(), false}, "refused": {healthy(by), true}, "refused no more": {healthy(noMore), false}} {
		var out bytes.Buffer
		if err := render(&out, cli.JobSet, Diagnose(tc.evidence), cli.Terminal{}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), want) != tc.want {
			t.Errorf("%s: the note is wrong:\n%s", name, out.String())
		}
	}
}

func TestNoteOnExclusivePlacement(t *testing.T) {
	exclusive := map[string]string{jobsetv1alpha2.ExclusiveKey: "rack"}
	selected := map[string]string{jobsetv1alpha2.ExclusiveKey: "rack", jobsetv1alpha2.NodeSelectorStrategyKey: "true"}
	cases := map[string]struct {
		change func(*jobsetv1alpha2.JobSet)
		// want is in the note; empty for no note.
		want string
	}{
		"none":               {change: func(*jobsetv1alpha2.JobSet) {}},
		"of the set":         {change: func(js *jobsetv1alpha2.JobSet) { js.Annotations = exclusive }, want: "is not in effect for jobs of this set: they were created while the feature gate ExclusivePlacement of"},
		"of a replicatedJob": {change: func(js *jobsetv1alpha2.JobSet) { js.Spec.ReplicatedJobs[0].Template.Annotations = exclusive }, want: "start both programs with"},
		"without jobs that show whether the gate is on": {change: func(js *jobsetv1alpha2.JobSet) {
			js.Annotations, js.Status.ReplicatedJobsStatus = exclusive, nil
		}},
		"suspended, so that it has given its domains back": {change: func(js *jobsetv1alpha2.JobSet) {
			js.Annotations, js.Spec.Suspend = exclusive, ptr.To(true)
		}},
		"with domains": {change: func(js *jobsetv1alpha2.JobSet) {
			js.Annotations, js.Status.Placement = exclusive, &jobsetv1alpha2.Placement{}
		}},
		"left to Kueue": {change: func(js *jobsetv1alpha2.JobSet) {
			js.Annotations = exclusive
			js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{"kueue.x-k8s.io/podset-required-topology": "rack"}
		}},
		"through node selectors":  {change: func(js *jobsetv1alpha2.JobSet) { js.Annotations = selected }},
		"with another controller": {change: func(js *jobsetv1alpha2.JobSet) { js.Annotations, js.Status.Attempts = exclusive, nil }},
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
