// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// multiKueue makes Kueue run the set in another cluster, from which it copies the numbers of Jobs and no attempts.
func multiKueue(js *jobsetv1alpha2.JobSet) {
	js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "gpu"}
	js.Spec.ManagedBy = ptr.To(jobsetv1alpha2.MultiKueueControllerName)
	js.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "workers", Active: 1, Ready: 1}}
}

// admittedAt is a Workload that was admitted after so many seconds, and runs in the cluster east.
func admittedAt(seconds float64, others ...string) *unstructured.Unstructured {
	conditions := []any{map[string]any{"type": "Admitted", "status": "True", "lastTransitionTime": after(seconds).Format(time.RFC3339)}}
	for _, other := range others {
		conditions = append(conditions, map[string]any{"type": other, "status": "False", "lastTransitionTime": after(seconds).Format(time.RFC3339)})
	}
	return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"clusterName": "east", "conditions": conditions}}}
}

func TestPhasesInWorkerCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		set      *jobsetv1alpha2.JobSet
		workload *unstructured.Unstructured
		want     []string
		wantNote string
	}{
		"runs there since it was admitted": {
			set: newSet(multiKueue), workload: admittedAt(60), want: []string{"queued 0-60", "remote 60-600 open"},
			wantNote: "the set runs in the cluster east, which has its attempts: run `kubectl jobset timeline train` there",
		},
		"was evicted before": {
			set: newSet(multiKueue), workload: admittedAt(60, "Evicted"), want: []string{"queued 0-60", "remote 60-600 open"},
			wantNote: "Kueue has evicted it before",
		},
		"the Workload may not be read": {
			set: newSet(multiKueue), want: []string{"remote 0-600 open"}, wantNote: "Kueue copies no history of attempts",
		},
		"waits for quota": {
			set:  newSet(multiKueue, suspended, func(js *jobsetv1alpha2.JobSet) { js.Status.ReplicatedJobsStatus = nil }),
			want: []string{"queued 0-600 open"},
		},
		"was evicted and waits": {
			set: newSet(multiKueue, suspended), workload: admittedAt(60), want: []string{"queued 0-600 open"}, wantNote: "cluster east",
		},
		"has completed": {
			set: newSet(multiKueue, withCondition("Completed", "AllJobsCompleted", metav1.ConditionTrue, 300)), workload: admittedAt(60),
			want: []string{"queued 0-60", "remote 60-300"}, wantNote: "the set ran in the cluster east; Kueue copies no history of attempts",
		},
		"was cancelled while it waited": {
			set:  newSet(multiKueue, suspended, withCondition("Failed", "Cancelled", metav1.ConditionTrue, 300)),
			want: []string{"queued 0-300"}, wantNote: "Kueue copies no history of attempts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			timeline := Build(tc.set, after(600))
			timeline.inWorkerCluster(tc.set, tc.workload)
			var got []string
			for _, phase := range timeline.Phases {
				text := fmt.Sprintf("%s %v-%v", phase.Kind, phase.Begin.Sub(noon).Seconds(), phase.End.Sub(noon).Seconds())
				if phase.Open {
					text += " open"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
			if !strings.Contains(timeline.Note, tc.wantNote) || tc.wantNote == "" && timeline.Note != "" {
				t.Errorf("got the note %q, want %q", timeline.Note, tc.wantNote)
			}
		})
	}
}
