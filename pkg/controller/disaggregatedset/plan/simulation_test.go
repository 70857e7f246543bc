// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// world is a cluster with one set, as far as decisions see it. Groups become ready one by one.
type world struct {
	set      *disaggregatedsetv1.DisaggregatedSet
	children map[string]*leaderworkersetv1.LeaderWorkerSet
	services map[string]Service
	scalers  map[string]*disaggregatedsetv1.DisaggregatedSetRoleScaler
	random   *rand.Rand
	now      time.Time
	uid      int
	// mutant changes plans, to show that the rules find it.
	mutant func(*Plan)
	events []Event
}

func newWorld(seed uint64, set *disaggregatedsetv1.DisaggregatedSet) *world {
	return &world{
		set: set, children: map[string]*leaderworkersetv1.LeaderWorkerSet{}, services: map[string]Service{},
		scalers: map[string]*disaggregatedsetv1.DisaggregatedSetRoleScaler{}, random: rand.New(rand.NewPCG(seed, 2)),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), mutant: func(*Plan) {},
	}
}

func (w *world) nextUID() types.UID {
	w.uid++
	return types.UID(strconv.Itoa(w.uid))
}

func (w *world) observe() Observed {
	obs := Observed{Set: w.set, Now: metav1.NewTime(w.now)}
	for _, name := range slices.Sorted(maps.Keys(w.children)) {
		obs.Children = append(obs.Children, ChildOf(w.children[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(w.services)) {
		obs.Services = append(obs.Services, w.services[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.scalers)) {
		obs.Scalers = append(obs.Scalers, w.scalers[name])
	}
	return obs
}

// pass makes one pass: all of the plan is written, or, if the writes fail, a part of each slice.
func (w *world) pass(fails bool) (wrote bool) {
	w.now = w.now.Add(time.Second)
	obs := w.observe()
	p := Decide(obs)
	w.mutant(&p)
	r := Results{Slices: make([]SliceResult, len(p.Slices))}
	for i, s := range p.CreateScalers {
		s.UID = w.nextUID()
		w.scalers[s.Name], wrote = s, true
		r.CreatedScalers = append(r.CreatedScalers, i)
	}
	for i, ref := range p.DeleteScalers {
		delete(w.scalers, ref.Name)
		wrote = true
		r.DeletedScalers = append(r.DeletedScalers, i)
	}
	for i := range p.Slices {
		wrote = true
		w.apply(p.Slices[i], &r.Slices[i], fails)
	}
	for _, s := range p.ScalerStatuses {
		if _, found := w.scalers[s.Name]; found {
			w.scalers[s.Name], wrote = s, true
		}
	}
	out := Finish(obs, p, r)
	w.events = append(w.events, out.Events...)
	if out.Status != nil {
		next := *w.set
		next.Status = *out.Status
		w.set, wrote = &next, true
	}
	return wrote
}

// apply writes a slice. A write that fails ends it.
func (w *world) apply(p SlicePlan, r *SliceResult, fails bool) {
	fail := func() bool { return fails && w.random.IntN(3) == 0 }
	for _, ref := range p.DeleteServices {
		delete(w.services, ref.Name)
	}
	for i, d := range p.DeleteChildren {
		delete(w.children, d.Name)
		r.DeletedChildren = append(r.DeletedChildren, i)
	}
	for _, s := range p.CreateServices {
		service := ServiceOf(s)
		service.UID = w.nextUID()
		w.services[s.Name] = service
	}
	for _, a := range p.Annotate {
		if fail() {
			return
		}
		lws := w.children[a.Name].DeepCopy()
		if a.Initial == nil {
			delete(lws.Annotations, disaggregatedsetv1.InitialReplicasAnnotationKey)
		} else {
			metav1.SetMetaDataAnnotation(&lws.ObjectMeta, disaggregatedsetv1.InitialReplicasAnnotationKey, strconv.FormatInt(*a.Initial, 10))
		}
		w.children[a.Name] = lws
	}
	for _, c := range p.Create {
		if fail() {
			return
		}
		lws := c.Child(w.set)
		lws.UID, lws.CreationTimestamp = w.nextUID(), metav1.NewTime(w.now)
		w.children[lws.Name] = lws
	}
	for i, s := range p.Scale {
		if fail() {
			return
		}
		lws := w.children[s.Name].DeepCopy()
		lws.Spec.Replicas = ptr.To(s.To)
		w.children[s.Name] = lws
		r.Scaled = append(r.Scaled, i)
	}
	r.Done = true
}

// groups lets groups start and stop.
func (w *world) groups() {
	for _, name := range slices.Sorted(maps.Keys(w.children)) {
		lws := w.children[name].DeepCopy()
		want := *lws.Spec.Replicas
		s := &lws.Status
		s.Replicas = want
		s.ReadyReplicas = min(s.ReadyReplicas, want)
		if s.ReadyReplicas < want && w.random.IntN(2) == 0 {
			s.ReadyReplicas++
		}
		s.UpdatedReplicas = want
		w.children[name] = lws
	}
}

// ready returns how many groups of a role are ready in a slice.
func (w *world) ready(slice, role string) (n int32) {
	for _, lws := range w.children {
		if lws.Labels[disaggregatedsetv1.SliceLabelKey] == slice && lws.Labels[disaggregatedsetv1.RoleLabelKey] == role {
			n += lws.Status.ReadyReplicas
		}
	}
	return n
}

// rests makes passes until nothing is left to do.
func (w *world) rests() error {
	for range 500 {
		before, stable := w.serving(), w.stable()
		wrote := w.pass(false)
		w.groups()
		if err := w.check(before); err != nil {
			return err
		}
		if !wrote && stable {
			return w.end()
		}
	}
	return fmt.Errorf("it does not come to rest: %s", w)
}

func (w *world) stable() bool {
	for _, lws := range w.children {
		if lws.Status.ReadyReplicas != *lws.Spec.Replicas {
			return false
		}
	}
	return true
}

// serving returns the roles, by slice and name, that have groups that are ready.
func (w *world) serving() map[[2]string]bool {
	has := map[[2]string]bool{}
	for i := range helper.Slices(w.set) {
		for j := range w.set.Spec.Roles {
			slice, role := strconv.Itoa(int(i)), w.set.Spec.Roles[j].Name
			if w.ready(slice, role) > 0 {
				has[[2]string{slice, role}] = true
			}
		}
	}
	return has
}

// check returns which rule is broken: a role that had groups that were ready keeps one.
func (w *world) check(before map[[2]string]bool) error {
	for key := range before {
		role := w.role(key[1])
		if role == nil || *role.Spec.Replicas == 0 {
			continue
		}
		if w.ready(key[0], key[1]) == 0 {
			return fmt.Errorf("role %s of slice %s has lost all groups: %s", key[1], key[0], w)
		}
	}
	return nil
}

func (w *world) role(name string) *disaggregatedsetv1.DisaggregatedRoleSpec {
	for i := range w.set.Spec.Roles {
		if w.set.Spec.Roles[i].Name == name {
			return &w.set.Spec.Roles[i]
		}
	}
	return nil
}

// end returns what is wrong when nothing changes any more.
func (w *world) end() error {
	revision, err := helper.Revision(w.set)
	if err != nil {
		return err
	}
	want := map[string]int32{}
	for i := range helper.Slices(w.set) {
		for j := range w.set.Spec.Roles {
			role := &w.set.Spec.Roles[j]
			want[helper.SetName(w.set.Name, i, revision, role.Name)] = *role.Spec.Replicas
		}
	}
	for name, lws := range w.children {
		if n, found := want[name]; !found || n != *lws.Spec.Replicas {
			return fmt.Errorf("%s is left with %d groups: %s", name, *lws.Spec.Replicas, w)
		}
	}
	if len(w.children) != len(want) {
		return fmt.Errorf("%d of %d sets exist: %s", len(w.children), len(want), w)
	}
	for _, c := range w.set.Status.Conditions {
		if c.Type == disaggregatedsetv1.ConditionAvailable && c.Status == metav1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("it is not available: %s", w)
}

// String lists what there is.
func (w *world) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.children)) {
		lws := w.children[name]
		out = append(out, fmt.Sprintf("%s: %d/%d", name, lws.Status.ReadyReplicas, *lws.Spec.Replicas))
	}
	return strings.Join(out, ", ")
}
