// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// TestReadingsEndWithTheirObjects changes one object at a time after a decision, as a cache does: by another object.
func TestReadingsEndWithTheirObjects(t *testing.T) {
	for name, c := range map[string]struct {
		change             func(f *fixture)
		wantApply, changed bool
	}{
		"nothing": {func(*fixture) {}, false, false},
		"a pod":   {func(f *fixture) { f.leader(0).Ready = false }, false, false},
		"the spec": {func(f *fixture) {
			f.Set = f.Set.DeepCopy()
			f.Set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "newer"
		}, true, true},
		"the metadata of the set": {func(f *fixture) {
			f.Set = f.Set.DeepCopy()
			f.Set.Labels = map[string]string{"a": "b"}
		}, true, false},
		"the leader StatefulSet": {func(f *fixture) {
			f.Leader = f.Leader.DeepCopy()
			delete(f.Leader.Annotations, "leaderworkerset.sigs.k8s.io/replicas")
		}, true, false},
		"what was applied":      {func(f *fixture) { f.Applied = "" }, true, false},
		"the revision":          {func(f *fixture) { f.Revisions[0] = f.Revisions[0].DeepCopy(); f.Revisions[0].Data.Raw = []byte("{}") }, true, true},
		"there is no revision":  {func(f *fixture) { f.Revisions = []*appsv1.ControllerRevision{} }, false, false},
		"the number of groups":  {func(f *fixture) { f.Set = f.Set.DeepCopy(); f.Set.Spec.Replicas = ptr.To[int32](4) }, true, false},
		"there is no leader":    {func(f *fixture) { f.Leader = nil }, true, false},
		"another set, the same": {func(f *fixture) { f.Set = f.Set.DeepCopy() }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, 2)
			f.serve()
			if f.Before = Decide(f.Observed).Reading; !f.Before.hasLeader(f.Observed, revisionOf(f.Observed).key, target{0, 3}) {
				t.Fatal("the decision did not find out that all is right")
			}
			c.change(f)
			p := Decide(f.Observed)
			if applied, changed := p.ApplyLeader != nil, revisionOf(f.Observed).changed; applied != c.wantApply || changed != c.changed {
				t.Errorf("applied %v, other revision %v; want %v, %v", applied, changed, c.wantApply, c.changed)
			}
		})
	}
}
