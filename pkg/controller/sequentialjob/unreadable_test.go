// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// ofJobSets makes the steps of a sequence run as JobSets. The first one runs.
func ofJobSets(sj *batchv1alpha1.SequentialJob) {
	sj.Spec.Containers = nil
	sj.Spec.Steps = []batchv1alpha1.SequentialJobStep{
		{Name: "a", JobSet: &batchv1alpha1.JobSetTemplateSpec{}}, {Name: "b", JobSet: &batchv1alpha1.JobSetTemplateSpec{}},
	}
	started(sj)
	sj.Status.Steps[0].Kind = batchv1alpha1.StepKindJobSet
}

// secondOfJobSets is a sequence whose second step runs.
func secondOfJobSets(sj *batchv1alpha1.SequentialJob) {
	ofJobSets(sj)
	sj.Status.Steps[0].State, sj.Status.Progress.CurrentIndex = batchv1alpha1.StepSucceeded, ptr.To[int32](1)
	sj.Status.Steps = append(sj.Status.Steps, batchv1alpha1.SequentialJobStepStatus{
		Name: "b", Kind: batchv1alpha1.StepKindJobSet, ChildName: "etl-1", State: batchv1alpha1.StepStarting, Attempts: 1,
	})
}

func jobSetOf(sj *batchv1alpha1.SequentialJob) *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{ObjectMeta: *jobOf(sj).ObjectMeta.DeepCopy()}
}

// damagedJobSet returns the placeholder of a JobSet. Without its metadata nothing but its name is known.
func damagedJobSet(js *jobsetv1alpha2.JobSet, metadata bool) *jobsetv1alpha2.JobSet {
	out := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: js.Namespace, Name: js.Name, ResourceVersion: "9"}}
	if metadata {
		out.UID, out.Labels, out.OwnerReferences = js.UID, js.Labels, js.OwnerReferences
	}
	out.Annotations = map[string]string{unreadable.Annotation: "its bytes are damaged"}
	return out
}

// TestJobSetThatCannotBeRead has the server lose the bytes of the JobSet of the first step. Nothing runs in its place, and nothing stops.
func TestJobSetThatCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		sequence        func(*batchv1alpha1.SequentialJob)
		known, metadata bool
		wantWaits       bool
		want            []string
	}{
		"while its step runs":                              {sequence: ofJobSets, known: true, metadata: true, wantWaits: true},
		"before the controller starts":                     {sequence: ofJobSets, metadata: true, wantWaits: true},
		"before it starts, and its metadata is lost":       {sequence: ofJobSets, wantWaits: true},
		"before the status knows it":                       {sequence: unseen, wantWaits: true},
		"while the sequence is to be suspended":            {sequence: suspendedOfJobSets, metadata: true, wantWaits: true},
		"after its step has ended":                         {sequence: secondOfJobSets, metadata: true, want: []string{"create jobsets etl-1"}},
		"while the sequence is being deleted":              {sequence: deletedOfJobSets, metadata: true},
		"while it is being deleted, and metadata is lost":  {sequence: deletedOfJobSets},
		"while it is being deleted, before it is known":    {sequence: func(sj *batchv1alpha1.SequentialJob) { unseen(sj); deleted(sj) }},
		"after the sequence was cancelled, metadata lost":  {sequence: func(sj *batchv1alpha1.SequentialJob) { ofJobSets(sj); cancelled(sj) }},
		"after the sequence was cancelled, metadata there": {sequence: func(sj *batchv1alpha1.SequentialJob) { ofJobSets(sj); cancelled(sj) }, metadata: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, sj := newUnreadableRig(t, tc.sequence, tc.known, tc.metadata)
				for range 4 {
					synctest.Wait()
					if _, err := r.Sync(t.Context(), key); err != nil {
						t.Fatal(err)
					}
				}
				writes := slices.DeleteFunc(r.written(), func(line string) bool { return strings.HasPrefix(line, "update sequentialjobs/status ") })
				diff(t, "writes", strings.Join(tc.want, "\n"), strings.Join(writes, "\n"))
				live, err := r.client.BatchV1alpha1().SequentialJobs("ns").Get(t.Context(), sj.Name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				c := meta.FindStatusCondition(live.Status.Conditions, batchv1alpha1.ConditionProgressing)
				waits := c != nil && c.Reason == batchv1alpha1.ReasonChildUnreadable && strings.Contains(c.Message, "etl-0") &&
					strings.Contains(c.Message, "its bytes are damaged")
				if waits != tc.wantWaits {
					t.Errorf("condition %+v", c)
				}
			})
		})
	}
}

func unseen(sj *batchv1alpha1.SequentialJob) {
	ofJobSets(sj)
	sj.Status.Steps[0].ChildUID, sj.Status.Steps[0].State = "", batchv1alpha1.StepStarting
}

func suspendedOfJobSets(sj *batchv1alpha1.SequentialJob) {
	ofJobSets(sj)
	sj.Spec.Suspend = ptr.To(true)
}

func deletedOfJobSets(sj *batchv1alpha1.SequentialJob) { ofJobSets(sj); deleted(sj) }

// newUnreadableRig returns a controller with running watches, and its sequence, whose first JobSet cannot be read.
func newUnreadableRig(t *testing.T, change func(*batchv1alpha1.SequentialJob), known, metadata bool) (*rig, *batchv1alpha1.SequentialJob) {
	sj := newSequence(change)
	js := jobSetOf(sj)
	r := newRig(t, sj)
	t.Cleanup(func() {
		ctx, stop := context.WithCancel(context.Background())
		stop()
		r.queue.Run(ctx, 1, r.Sync)
	})
	bad, stored := damagedJobSet(js, metadata), js
	if !known {
		stored = bad
	}
	sets := jobsetv1alpha2.SchemeGroupVersion.WithResource("jobsets")
	if err := r.client.Tracker().Create(sets, stored, "ns"); err != nil {
		t.Fatal(err)
	}
	r.watches.Start(t.Context())
	synctest.Wait()
	if err := r.client.Tracker().Update(sets, bad, "ns"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return r, sj
}
