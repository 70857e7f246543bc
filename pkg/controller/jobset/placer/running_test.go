// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/domains"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/placement"
)

// TestJobsThatRunKeepTheirDomains has Jobs run in domains that the status does not have, while no pod is seen: other Jobs of their set get
// others, when they are placed and when they move.
func TestJobsThatRunKeepTheirDomains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, placement.WhenFullWait, node("a", 0), node("b", 0), node("c", 0))
		js := e.set("js", 2, 0)
		second := *js.Spec.ReplicatedJobs[0].DeepCopy()
		second.Name = "v"
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, second)
		missing := domains.Unplaced{Topology: rack, Indexes: []int32{1}, Restarts: []int32{0}, Running: []domains.Running{
			{Topology: rack, Domain: "a"}, {Place: 1, Topology: rack, Domain: "b"}, {Place: 1, Index: 1, Topology: rack, Domain: "c"},
		}}
		e.await(e.set("fills", 0, 0), "")
		if placed, err := e.Place(t.Context(), js, []domains.Unplaced{missing}); err != nil || placed.Placement != nil {
			t.Errorf("without a free domain: %+v, %v", placed, err)
		}
		missing.Running = missing.Running[:2] // the last one has ended
		placed, err := e.Place(t.Context(), js, []domains.Unplaced{missing})
		if err != nil || placed.Placement == nil {
			t.Fatalf("with a free domain: %+v, %v", placed, err)
		}
		want := []jobsetv1alpha2.JobPlacement{{}, {Domain: "c", Nodes: 1}}
		if diff := cmp.Diff(want, placed.Placement.ReplicatedJobs[0].Jobs); diff != "" {
			t.Errorf("Jobs of the set (-want +got):\n%s", diff)
		}
		js = e.written(js, placed)
		stuck := []domains.Stuck{{
			Waiting: domains.Waiting{Since: e.clock.Now().Add(-time.Hour)}, Index: 1, UID: "uid", Topology: rack, At: want[1], Running: missing.Running,
		}}
		if moving, err := e.Move(t.Context(), js, stuck); err != nil || moving.Move != nil {
			t.Errorf("a Job whose pods get no nodes: %+v, %v", moving.Move, err)
		}
		e.clock.Step(2 * retryMove)
		stuck[0].Running = missing.Running[:1]
		e.Freed()
		if moving, err := e.Move(t.Context(), js, stuck); err != nil || moving.Move == nil || moving.Move.Domain != "b" {
			t.Errorf("a Job whose pods get no nodes, when another Job has ended: %+v, %v", moving.Move, err)
		}
	})
}
