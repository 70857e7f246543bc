// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	kueueplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
)

// Sets that Kueue runs in another cluster (MultiKueue). Kueue copies their status without the history of attempts; the
// Workload has the time since which the set runs there.

// readWorkload reads the Workload of a set; nil if there is none, or if it may not be read: the chart is then less exact.
func readWorkload(ctx context.Context, c *cli.Clients, js *jobsetv1alpha2.JobSet) *unstructured.Unstructured {
	for _, version := range []string{"v1beta2", "v1beta1"} {
		resource := schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: version, Resource: "workloads"}
		list, err := c.Dynamic.Resource(resource).Namespace(js.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "kueue.x-k8s.io/job-uid=" +
			string(js.UID)})
		if err == nil && len(list.Items) > 0 {
			return &list.Items[0]
		}
	}
	return nil
}

// inWorkerCluster draws when the set waited, and when it ran in another cluster. Copies of attempts are left as they are.
func (t *Timeline) inWorkerCluster(js *jobsetv1alpha2.JobSet, workload *unstructured.Unstructured) {
	if len(js.Status.Attempts) > 0 {
		return
	}
	since, admitted := transition(workload, kueueplan.ConditionAdmitted, metav1.ConditionTrue)
	suspended := ptr.Deref(js.Spec.Suspend, false)
	if suspended && !t.Finished {
		admitted = false // it has been evicted
	}
	t.Phases = nil
	switch {
	case admitted:
		since = sooner(later(since, t.Begin), t.End)
		t.between(Queued, t.Begin, since, false)
		t.between(Remote, since, t.End, !t.Finished)
	case suspended:
		t.between(Queued, t.Begin, t.End, !t.Finished)
	default:
		t.between(Remote, t.Begin, t.End, !t.Finished)
	}
	if !admitted && !snapshot.LacksAttempts(js) {
		return
	}
	t.Note = snapshot.NoAttempts(js)
	if workload == nil {
		return
	}
	if cluster, _, _ := unstructured.NestedString(workload.Object, "status", "clusterName"); cluster != "" {
		t.Note = fmt.Sprintf("the set runs in the cluster %s, which has its attempts: run `kubectl jobset timeline %s` there", cluster, js.Name)
		if t.Finished {
			t.Note = fmt.Sprintf("the set ran in the cluster %s; Kueue copies no history of attempts, and deletes what was there", cluster)
		}
	}
	if _, evicted := transition(workload, kueueplan.ConditionEvicted, ""); evicted {
		t.Note += "; Kueue has evicted it before, and the chart does not show when it ran until then"
	}
}

// between adds a phase between two times, unless it has no length.
func (t *Timeline) between(kind Kind, begin, end time.Time, open bool) {
	if end.After(begin) || open {
		t.Phases = append(t.Phases, Phase{Kind: kind, Begin: begin, End: end, Seconds: end.Sub(begin).Seconds(), Open: open})
	}
}

// transition returns when the condition of the Workload got its status, if it has that status; "" for any.
func transition(workload *unstructured.Unstructured, conditionType string, status metav1.ConditionStatus) (time.Time, bool) {
	if workload == nil {
		return time.Time{}, false
	}
	conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	for _, c := range conditions {
		fields, ok := c.(map[string]any)
		if !ok || fields["type"] != conditionType || status != "" && fields["status"] != string(status) {
			continue
		}
		text, _ := fields["lastTransitionTime"].(string)
		at, err := time.Parse(time.RFC3339, text)
		return at.UTC(), err == nil
	}
	return time.Time{}, false
}
