// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
)

// randomSet returns a set of some roles and slices.
func randomSet(random *rand.Rand) *disaggregatedsetv1.DisaggregatedSet {
	ds := &disaggregatedsetv1.DisaggregatedSet{ObjectMeta: metav1.ObjectMeta{Name: "llm", Namespace: "ml", UID: "set", Generation: 1}}
	ds.Spec.Slices = ptr.To(int32(1 + random.IntN(2)))
	randomize(ds, random, []string{"prefill", "decode", "encode"}[:2+random.IntN(2)])
	return ds
}

// edit gives the roles other templates, sizes or limits, and may add or remove one.
func edit(ds *disaggregatedsetv1.DisaggregatedSet, random *rand.Rand) *disaggregatedsetv1.DisaggregatedSet {
	next := ds.DeepCopy()
	next.Generation++
	randomize(next, random, []string{"prefill", "decode", "encode"}[:2+random.IntN(2)])
	return next
}

func randomize(ds *disaggregatedsetv1.DisaggregatedSet, random *rand.Rand, names []string) {
	image := []string{"a", "b", "c"}[random.IntN(3)]
	ds.Spec.Roles = nil
	for _, name := range names {
		role := disaggregatedsetv1.DisaggregatedRoleSpec{Name: name}
		role.Spec.Replicas = ptr.To(int32(1 + random.IntN(6)))
		role.Spec.LeaderWorkerTemplate.WorkerTemplate.Labels = map[string]string{"image": image}
		ds.Spec.Roles = append(ds.Spec.Roles, role)
	}
}

// history runs a set through some edits, each at a random time of the rollout before it, with writes that fail.
func history(seed uint64, mutant func(*Plan)) error {
	random := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(seed, randomSet(random))
	w.mutant = mutant
	for range 1 + random.IntN(4) {
		for range random.IntN(30) {
			before := w.serving()
			w.pass(true)
			w.groups()
			if err := w.check(before); err != nil {
				return err
			}
		}
		w.set = edit(w.set, random)
	}
	return w.rests()
}

func TestHistories(t *testing.T) {
	for seed := range uint64(400) {
		if err := history(seed, func(*Plan) {}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// Each mutant has a defect that the rules must find.
func TestHistoriesFindDefects(t *testing.T) {
	mutants := map[string]func(*Plan){
		"former revisions are drained at once": func(p *Plan) {
			for i := range p.Slices {
				for j := range p.Slices[i].Scale {
					if s := &p.Slices[i].Scale[j]; s.To < s.From {
						s.To = 0
					}
				}
			}
		},
		"drained revisions stay": func(p *Plan) {
			for i := range p.Slices {
				p.Slices[i].DeleteChildren = nil
			}
		},
		"nothing is scaled down": func(p *Plan) {
			for i := range p.Slices {
				p.Slices[i].Scale = slices.DeleteFunc(p.Slices[i].Scale, func(s Scaling) bool { return s.To < s.From })
			}
		},
		"one slice is forgotten": func(p *Plan) {
			p.Slices = slices.DeleteFunc(p.Slices, func(s SlicePlan) bool { return s.Slice == 1 })
		},
		"former revisions carry no number": func(p *Plan) {
			for i := range p.Slices {
				p.Slices[i].Annotate = nil
			}
		},
	}
	for name, mutant := range mutants {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				if history(seed, mutant) != nil {
					return
				}
			}
			t.Error("no rule finds it")
		})
	}
}
