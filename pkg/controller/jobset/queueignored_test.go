// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/kueue"
)

// TestIgnoredQueueIsReportedOnce asks for Kueue only about sets with a queue, and believes nothing but that it is absent.
func TestIgnoredQueueIsReportedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*jobsetv1alpha2.JobSet)
		kueue  kueue.Availability
		want   string
		asked  bool
	}{
		"Kueue is absent":     {kueue: kueue.Absent, want: "team", asked: true},
		"Kueue is there":      {kueue: kueue.Served, asked: true},
		"it is not known":     {kueue: kueue.Unknown, asked: true},
		"no queue":            {func(js *jobsetv1alpha2.JobSet) { js.Labels = nil }, kueue.Absent, "", false},
		"it waits":            {func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }, kueue.Absent, "", false},
		"it has ended":        {func(js *jobsetv1alpha2.JobSet) { js.Status.TerminalState = string(jobsetv1alpha2.JobSetCompleted) }, kueue.Absent, "", false},
		"it is being deleted": {func(js *jobsetv1alpha2.JobSet) { js.DeletionTimestamp = ptr.To(metav1.Now()) }, kueue.Absent, "", false},
		"another controller":  {func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }, kueue.Absent, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			set, asked := newSet(), false
			set.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"}
			if tc.change != nil {
				tc.change(set)
			}
			r := newRig(t, set)
			r.deps.Kueue = func(context.Context) kueue.Availability {
				asked = true
				return tc.kueue
			}
			diff(t, "first", tc.want, ignoredQueue(t, r, set))
			diff(t, "asked", tc.asked, asked)
			diff(t, "second", "", ignoredQueue(t, r, set))
			again := set.DeepCopy()
			again.UID = "another"
			diff(t, "another set of the name", tc.want, ignoredQueue(t, r, again))
			r.Forget(cache.MetaObjectToName(set))
			diff(t, "one that is gone", types.UID(""), r.queueReported.Noted(cache.MetaObjectToName(set)))
		})
	}
}

// TestIgnoredQueueIsAnEvent has a set start in a cluster without Kueue.
func TestIgnoredQueueIsAnEvent(t *testing.T) {
	set := newSet()
	set.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "team"}
	r := newRig(t, set)
	if err := r.caches.jobSets.GetIndexer().Add(set); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = r.Sync(t.Context(), cache.MetaObjectToName(set))
		r.deps.Consistency.Forget(cache.MetaObjectToName(set)) // these caches show nothing
	}
	var got []string
	for _, event := range r.events.all() {
		if strings.Contains(event, "QueueIgnored") {
			got = append(got, event)
		}
	}
	diff(t, "events", []string{"Warning QueueIgnored Reconciling: the label kueue.x-k8s.io/queue-name names the queue team, but the cluster does not serve kueue.x-k8s.io: " +
		"Kueue is not installed, so that the jobset runs without quota"}, got)
}

func ignoredQueue(t *testing.T, r *rig, js *jobsetv1alpha2.JobSet) string {
	t.Helper()
	return kueue.IgnoredQueue(t.Context(), r.deps.Kueue, r.queueReported, js, plan.Decide(plan.Observed{JobSet: js}).DespiteQueue)
}
