// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// TestLossWithoutAnyProcess has a controller start that has seen nothing of what happened to the workers of a set which was available.
func TestLossWithoutAnyProcess(t *testing.T) {
	const long = time.Hour
	replaced := func(f *fixture) { f.worker(1, 2).UID, f.worker(1, 2).Created = "another", f.Now }
	for name, c := range map[string]struct {
		change func(f *fixture)
		want   []string
	}{
		"nothing has happened":        {func(*fixture) {}, nil},
		"a worker was replaced":       {replaced, []string{"s-1"}},
		"a worker is gone":            {func(f *fixture) { f.workers(1).Pods = f.workers(1).Pods[:1] }, []string{"s-1"}},
		"all workers are gone":        {func(f *fixture) { f.workers(1).Pods = nil }, []string{"s-1"}},
		"workers of two groups":       {func(f *fixture) { replaced(f); f.workers(0).Pods = nil }, []string{"s-0", "s-1"}},
		"policy None":                 {func(f *fixture) { replaced(f); f.Set.Spec.LeaderWorkerTemplate.RestartPolicy = "None" }, nil},
		"a worker that has succeeded": {func(f *fixture) { f.worker(1, 2).Phase = "Succeeded" }, nil},
		"a worker of a new group": {func(f *fixture) {
			f.replace(1)
			f.leader(1).Created, f.workers(1).CreatedAt = f.Now, f.Now
		}, nil},
		"workers whose StatefulSet was deleted": {func(f *fixture) { replaced(f); f.workers(1).CreatedAt = f.Now }, nil},
		"no StatefulSet":                        {func(f *fixture) { f.forgetWorkers(1) }, nil},
		"one pod more than there should be": {func(f *fixture) {
			more := *f.worker(1, 2)
			more.Name, more.Created = "s-1-3", f.Now
			f.workers(1).Pods = append(f.workers(1).Pods, more)
		}, nil},
		"the clocks differ": {func(f *fixture) {
			replaced(f)
			f.worker(1, 2).Created = metav1.NewTime(f.Now.Add(clockSkew - long))
		}, nil},
		"the set was not available": {func(f *fixture) { f.workers(0).Ready = false; f.stabilize(); f.workers(0).Ready = true; replaced(f) }, nil},
		"the spec has changed":      {func(f *fixture) { replaced(f); f.Set.Generation++ }, nil},
		"a group above the replicas": {func(f *fixture) {
			replaced(f)
			f.Set.Spec.Replicas = ptr.To[int32](1)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, 3)
			for i := range f.Observed.Workers {
				f.Observed.Workers[i].CreatedAt = f.Now
			}
			f.stabilize()
			if status, _ := f.condition(leaderworkersetv1.ConditionAvailable); status != metav1.ConditionTrue {
				t.Fatal("not available")
			}
			f.later(long)
			c.change(f)
			f.pass()
			var got []string
			for _, e := range f.Set.Status.Groups {
				got = append(got, "s-"+string('0'+rune(e.Index)))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("groups to recreate (-want +got):\n" + diff)
			}
			if diff := cmp.Diff(c.want, deleted(Decide(f.Observed))); diff != "" {
				t.Error("leaders to delete (-want +got):\n" + diff)
			}
			if e := f.status(1); len(c.want) > 0 && (e.Restarts != 1 || e.FirstCause == nil) {
				t.Errorf("entry %+v", e)
			}
		})
	}
}
