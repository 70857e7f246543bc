// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

// stored returns the revisions as number and key, oldest first.
func (w *world) stored() string {
	var out []string
	sorted := slices.SortedFunc(slices.Values(w.revisions), func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	for _, r := range sorted {
		out = append(out, fmt.Sprintf("%d:%s", r.Revision, r.Labels[leaderworkersetv1.RevisionKey]))
	}
	return strings.Join(out, " ")
}

// finish makes all groups ready until the update is complete.
func (w *world) finish() *world {
	w.t.Helper()
	for range 50 {
		w.ready(w.all()...)
	}
	if !w.available() {
		w.t.Fatalf("not available: %s", w)
	}
	return w
}

func (w *world) has(event string) bool { return slices.Contains(w.events, event) }

func TestFirstRevision(t *testing.T) {
	w := newWorld(t, nil)
	p := Decide(w.observe())
	data, err := helper.RevisionPayload(w.set)
	if err != nil {
		t.Fatal(err)
	}
	k := helper.RevisionKey(data)
	want := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: "test-sample-" + k + "-1", Namespace: "default",
			Labels:          map[string]string{"leaderworkerset.sigs.k8s.io/name": "test-sample", "leaderworkerset.sigs.k8s.io/template-revision-hash": k},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.set, setKind)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: 1,
	}
	if diff := cmp.Diff(want, p.CreateRevision); diff != "" {
		t.Error(diff)
	}
	w.stabilize()
	for _, event := range []string{
		"Normal|CreatingRevision|Create|Creating revision with key " + k + " for a newly created LeaderWorkerSet",
		"Normal|GroupsProgressing|Create|Created leader statefulset test-sample",
	} {
		if !w.has(event) {
			t.Errorf("no %q in %q", event, w.events)
		}
	}
}

// An upgrade of the controller rolls nothing, whatever a former release has written.
func TestRevisionOfFormerReleaseDoesNotRoll(t *testing.T) {
	w := atRest(t, 3, 1, 0, 0)
	uids := fmt.Sprint(w.all(), w.pods[0].uid, w.pods[1].uid, w.pods[2].uid)
	r := w.revisions[0].DeepCopy()
	was := string(r.Data.Raw)
	r.Data.Raw = []byte(strings.ReplaceAll(was, `"metadata":{}`, `"metadata":{"creationTimestamp":null}`))
	if string(r.Data.Raw) == was {
		t.Fatal("no change")
	}
	w.revisions[0], w.applied = r, ""
	before := w.stored()
	w.stabilize()
	if got := w.stored(); got != before || len(w.targets) > 0 && w.targets[0] != "(0,3)" {
		t.Errorf("revisions %s, were %s; targets %v", got, before, w.targets)
	}
	if got := fmt.Sprint(w.all(), w.pods[0].uid, w.pods[1].uid, w.pods[2].uid); got != uids {
		t.Error("pods were replaced")
	}
	// Back at it after another one, its key is used again.
	k := r.Labels[leaderworkersetv1.RevisionKey]
	w.change(w.image("2"))
	w.change(w.image("1"))
	if got := key(w.leader); got != k {
		t.Errorf("key %s, want %s", got, k)
	}
}

func TestRefusedUpdateMakesOneRevision(t *testing.T) {
	w := atRest(t, 3, 1, 0, 0)
	w.refuse = func(sts *appsv1.StatefulSet) string {
		if len(sts.Spec.VolumeClaimTemplates) > 0 {
			return "forbidden"
		}
		return ""
	}
	claims := func(name string) func(*leaderworkersetv1.LeaderWorkerSetSpec) {
		return func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
			s.LeaderWorkerTemplate.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		}
	}
	w.change(claims("a"))
	for range 20 {
		w.step()
	}
	if len(w.revisions) != 2 || !w.has("Warning|FailedUpdate|Update|Failed to update leader statefulset test-sample: forbidden") {
		t.Errorf("%d revisions, events %q", len(w.revisions), w.events)
	}
	for i := range 40 {
		w.change(claims(fmt.Sprint("a", i)))
	}
	if len(w.revisions) > maxUnused+3 {
		t.Errorf("%d revisions after changes that were refused", len(w.revisions))
	}
	w.change(func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.LeaderWorkerTemplate.VolumeClaimTemplates = nil })
	if w.stabilize(); len(w.revisions) != 1 || len(w.targets) != 0 {
		t.Errorf("%d revisions after the change was reverted, targets %v", len(w.revisions), w.targets)
	}
}

func TestLostRevisionIsCreatedWithTheKeyOfGroups(t *testing.T) {
	w := atRest(t, 3, 1, 0, 0)
	k := key(w.leader)
	// A former release with other hashes.
	w.leader.Labels[leaderworkersetv1.RevisionKey], w.leader.Spec.Template.Labels[leaderworkersetv1.RevisionKey], w.current = "former", "former", "former"
	for _, p := range w.pods {
		p.key = "former"
	}
	w.revisions = nil
	w.stabilize()
	if got := w.stored(); got != "1:former" || w.revisions[0].Name != "test-sample-"+k+"-1" {
		t.Errorf("revisions %s, %s", got, w.revisions[0].Name)
	}
	if !w.has("Normal|CreatingRevision|Create|Creating missing revision with key former for existing LeaderWorkerSet") {
		t.Errorf("events %q", w.events)
	}
	if got := w.groups(); got != "N N N" || key(w.leader) != "former" {
		t.Errorf("groups %s", got)
	}
	// The spec is not what the StatefulSet has: that is an update.
	w.revisions, w.targets = nil, nil
	w.change(w.image("2")).wantTargets("(3,3) (2,3)")
	w.finish().wantGroups("N N N")
}

// A revision that is lost while only the template of workers changes must not come back with the template of now:
// groups of its key run the former one.
func TestLostRevisionDoesNotTakeOtherWorkers(t *testing.T) {
	workers := func(image string) func(*leaderworkersetv1.LeaderWorkerSetSpec) {
		return func(s *leaderworkersetv1.LeaderWorkerSetSpec) {
			s.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = image
		}
	}
	for name, test := range map[string]struct {
		key       string // of the groups, if not that of upstream
		change    func(*leaderworkersetv1.LeaderWorkerSetSpec)
		wantRolls bool
	}{
		"the workers have changed":                     {"", workers("2"), true},
		"the policy has changed":                       {"", func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.LeaderWorkerTemplate.RestartPolicy = "None" }, true},
		"only the replicas have changed":               {"", func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.Replicas = ptr.To[int32](4) }, false},
		"nothing has changed":                          {"", func(*leaderworkersetv1.LeaderWorkerSetSpec) {}, false},
		"a key of a former release, other workers":     {"former", workers("2"), true},
		"a key of a former release, and no change":     {"former", nil, false},
		"a key too long for a hash, and other workers": {"6859c84d696859c84d69", workers("2"), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := atRest(t, 3, 1, 0, 0)
			if test.key != "" {
				w.leader.Labels[leaderworkersetv1.RevisionKey], w.leader.Spec.Template.Labels[leaderworkersetv1.RevisionKey], w.current = test.key, test.key, test.key
				for _, p := range w.pods {
					p.key = test.key
				}
			}
			k := key(w.leader)
			w.revisions = nil
			if test.change != nil {
				w.change(test.change)
			}
			w.stabilize()
			if rolls := key(w.leader) != k; rolls != test.wantRolls {
				t.Errorf("the key was %s and is %s", k, key(w.leader))
			}
			for _, r := range w.revisions {
				if r.Labels[leaderworkersetv1.RevisionKey] == k && test.wantRolls {
					t.Errorf("revision %s has the key of groups with another template", r.Name)
				}
			}
			w.finish().wantGroups(strings.TrimSpace(strings.Repeat("N ", len(w.pods))))
		})
	}
}

func TestRollbackReusesTheKey(t *testing.T) {
	w := atRest(t, 2, 1, 0, 0)
	first := key(w.leader)
	w.spec(func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.RevisionHistoryLimit = ptr.To[int32](2) })
	w.change(w.image("2")).finish()
	second := key(w.leader)
	if got, want := w.stored(), "1:"+first+" 2:"+second; got != want {
		t.Errorf("revisions %s, want %s", got, want)
	}
	w.change(w.image("1"))
	if got, want := w.stored(), "2:"+second+" 3:"+first; got != want && got != "1:"+first+" "+want {
		t.Errorf("revisions %s, want %s", got, want)
	}
	w.finish()
	if got, want := w.stored(), "2:"+second+" 3:"+first; got != want || key(w.leader) != first {
		t.Errorf("revisions %s, want %s", got, want)
	}
	w.change(w.image("3")).finish()
	w.change(w.image("4")).finish()
	if got := len(w.revisions); got != 3 {
		t.Errorf("%d revisions, want the one in use and two former ones", got)
	}
	w.change(func(s *leaderworkersetv1.LeaderWorkerSetSpec) { s.RevisionHistoryLimit = nil })
	if got := len(w.revisions); got != 1 {
		t.Errorf("%d revisions without a limit, want 1", got)
	}
}

func TestRevisionsOfGroupsStay(t *testing.T) {
	w := atRest(t, 3, 1, 0, 2)
	first := key(w.leader)
	for i := range 30 {
		w.change(w.image(fmt.Sprint("x", i)))
		w.ready(w.all()...)
	}
	if newest(w.revisions, first) == nil {
		t.Error("the revision of groups below the partition is gone")
	}
	if len(w.revisions) > maxUnused+3 {
		t.Errorf("%d revisions", len(w.revisions))
	}
}

func TestDeletedLeaderIsRecreatedAtItsRevision(t *testing.T) {
	w := atRest(t, 3, 1, 0, 0)
	before := w.stored()
	w.leader, w.pods, w.applied = nil, map[int32]*worldPod{}, ""
	w.stabilize()
	if got := w.stored(); got != before {
		t.Errorf("revisions %s, were %s", got, before)
	}
}

// Two payloads with one hash have two keys.
func TestKeysAreNotShared(t *testing.T) {
	w := newWorld(t, nil)
	k := revisionOf(w.observe()).key
	w.revisions = []*appsv1.ControllerRevision{{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{leaderworkersetv1.RevisionKey: k}}, Data: runtime.RawExtension{Raw: []byte(`{"spec":{"leaderWorkerTemplate":{}}}`)}, Revision: 1,
	}}
	if got := revisionOf(w.observe()).key; got == k {
		t.Error("another payload has the same key")
	}
}
