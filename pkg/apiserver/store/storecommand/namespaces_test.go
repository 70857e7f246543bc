// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// stored is an object of a namespace, and what its annotation says.
func stored(namespace, kind, name, recorded string, changes ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	set := object(map[string]string{"JobSet": "jobset.x-k8s.io/v1alpha2", "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1"}[kind], kind, name)
	set.Namespace, set.ResourceVersion, set.CreationTimestamp = namespace, "7", metav1.NewTime(testNow)
	if recorded != "" {
		set.Annotations = map[string]string{namespaceuid.Annotation: recorded}
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

// inNamespaces returns a cluster in which all groups but those of notRouted are routed to the server, with the namespaces team-a, which
// is as old as the objects, and team-b, which was created again since. The server records what is the UID of a namespace.
func inNamespaces(t *testing.T, notRouted string, objects ...runtime.Object) *mainCluster {
	t.Helper()
	m := newCluster(t, objects...)
	for name, age := range map[string]time.Duration{"team-a": time.Hour, "team-b": -time.Hour} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(testNow.Add(-age))}}
		if err := m.kube.Tracker().Add(namespace); err != nil {
			t.Fatal(err)
		}
	}
	var services []runtime.Object
	for _, version := range apigroups.All().PrioritizedVersionsAllGroups() {
		spec := map[string]any{"service": map[string]any{"name": "jobset-apiserver"}}
		if version.Group == notRouted {
			spec = map[string]any{}
		}
		services = append(services, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version.Version + "." + version.Group}, "spec": spec,
		}})
	}
	m.dynamic = dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), services...)
	return m
}

func (m *mainCluster) fakeMetadata() *metadatafake.FakeMetadataClient {
	return m.metadata.(*metadatafake.FakeMetadataClient)
}

// recordedIn returns what the annotations say, by namespace and name.
func (m *mainCluster) recordedIn() map[string]string {
	m.t.Helper()
	got := map[string]string{}
	for _, group := range apigroups.All().InEtcd() {
		for _, resource := range group.Resources {
			list, err := m.metadata.Resource(group.Versions[0].WithResource(resource)).List(m.t.Context(), metav1.ListOptions{})
			if err != nil {
				m.t.Fatal(err)
			}
			for _, item := range list.Items {
				got[item.Namespace+"/"+item.Name] = item.Annotations[namespaceuid.Annotation]
			}
		}
	}
	return got
}

func TestAcceptNamespaces(t *testing.T) {
	deleting := func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = &metav1.Time{Time: testNow} }
	damaged := func(o *metav1.PartialObjectMetadata) {
		o.Annotations = map[string]string{unreadable.Annotation: "its bytes are damaged"}
	}
	objects := func() []runtime.Object {
		return []runtime.Object{
			stored("team-a", "JobSet", "imported", ""), stored("team-a", "LeaderWorkerSet", "serve", ""), stored("team-a", "JobSet", "known", "uid-of-team-a"),
			stored("team-a", "JobSet", "moved", "uid-of-before"), stored("team-a", "JobSet", "deleting", "", deleting), stored("team-a", "JobSet", "damaged", "", damaged),
			stored("team-b", "JobSet", "old", "uid-of-before"), stored("team-b", "JobSet", "older", ""), stored("gone", "JobSet", "lost", ""),
		}
	}
	before := map[string]string{
		"team-a/imported": "", "team-a/serve": "", "team-a/known": "uid-of-team-a", "team-a/moved": "uid-of-before", "team-a/deleting": "", "team-a/damaged": "",
		"team-b/old": "uid-of-before", "team-b/older": "", "gone/lost": "",
	}
	with := func(changes map[string]string) map[string]string {
		after := map[string]string{}
		for name, uid := range before {
			after[name] = uid
		}
		for name, uid := range changes {
			after[name] = uid
		}
		return after
	}
	const advice = "Objects of an earlier namespace of the same name belong to its former users. If they belong to the present ones, for example because\n" +
		"the cluster was built again, accept them with --namespaces=all, and with --namespace for a single namespace.\n"
	const gone = "namespace gone: 1 object of a namespace that does not exist or is being deleted left alone\n"
	for name, tc := range map[string]struct {
		args      []string
		notRouted string
		want      result
		after     map[string]string
	}{
		"missing": {args: []string{"--namespaces=missing"}, after: with(map[string]string{"team-a/imported": "uid-of-team-a", "team-a/serve": "uid-of-team-a"}), want: result{
			out: gone + "namespace team-a: 2 objects accepted\nnamespace team-a: 1 object of an earlier namespace of this name left alone\n" +
				"namespace team-a: 1 object that cannot be read left alone\nnamespace team-b: 2 objects of an earlier namespace of this name left alone\n2 objects in 1 namespace accepted\n",
			errOut: advice,
		}},
		"missing, only a try": {args: []string{"--namespaces=missing", "--dry-run=client"}, after: before, want: result{
			out: gone + "namespace team-a: 2 objects accepted (dry run)\nnamespace team-a: 1 object of an earlier namespace of this name left alone\n" +
				"namespace team-a: 1 object that cannot be read left alone\nnamespace team-b: 2 objects of an earlier namespace of this name left alone\n2 objects in 1 namespace accepted (dry run)\n",
			errOut: advice,
		}},
		"all": {args: []string{"--namespaces=all"}, after: with(map[string]string{
			"team-a/imported": "uid-of-team-a", "team-a/serve": "uid-of-team-a", "team-a/moved": "uid-of-team-a", "team-b/old": "uid-of-team-b", "team-b/older": "uid-of-team-b",
		}), want: result{out: gone + "namespace team-a: 3 objects accepted\nnamespace team-a: 1 object that cannot be read left alone\nnamespace team-b: 2 objects accepted\n" +
			"5 objects in 2 namespaces accepted\n"}},
		"all of one namespace": {args: []string{"--namespaces=all", "-n", "team-b"}, after: with(map[string]string{"team-b/old": "uid-of-team-b", "team-b/older": "uid-of-team-b"}), want: result{
			out: "namespace team-b: 2 objects accepted\n2 objects in 1 namespace accepted\n",
		}},
		"a group of another controller": {args: []string{"--namespaces=all", "-n", "team-a"}, notRouted: "leaderworkerset.x-k8s.io", after: with(map[string]string{
			"team-a/imported": "uid-of-team-a", "team-a/moved": "uid-of-team-a",
		}), want: result{out: "namespace team-a: 2 objects accepted\nnamespace team-a: 1 object that cannot be read left alone\n2 objects in 1 namespace accepted\n",
			errOut: "leaderworkersets.leaderworkerset.x-k8s.io: not routed to jobset-apiserver; its objects stay as they are\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := inNamespaces(t, tc.notRouted, objects()...)
			got := m.run(append([]string{"accept"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.after, m.recordedIn()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			for _, action := range m.fakeMetadata().Actions() {
				if patch, ok := action.(clienttesting.PatchAction); ok && !strings.Contains(string(patch.GetPatch()), `"resourceVersion":"7"`) {
					t.Errorf("a patch does not name the version: %s", patch.GetPatch())
				}
			}
			if tc.args[len(tc.args)-1] == "--dry-run=client" {
				return
			}
			if got := m.run(append([]string{"accept"}, tc.args...)...); !strings.Contains(got.out, "0 objects in 0 namespaces accepted\n") {
				t.Errorf("the second run: %+v", got)
			}
		})
	}
}

// TestAcceptNamespacesWhileOthersWrite: an object is looked at again after a conflict, and one that cannot be written keeps no other from being.
func TestAcceptNamespacesWhileOthersWrite(t *testing.T) {
	conflict := apierrors.NewConflict(jobSetResource, "a", nil)
	for name, tc := range map[string]struct {
		// answer is the answer to an attempt, after which the object a is changed.
		answer func(attempt int) error
		change func(*metav1.PartialObjectMetadata)
		// recorded is what the server keeps instead of what was asked.
		recorded string
		patches  int
		want     result
	}{
		"others write it once": {answer: func(attempt int) error {
			if attempt == 1 {
				return conflict
			}
			return nil
		}, change: func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "8" }, patches: 2, want: result{out: "namespace team-a: 2 objects accepted\n2 objects in 1 namespace accepted\n"}},
		"others accept it": {answer: func(int) error { return conflict }, change: func(o *metav1.PartialObjectMetadata) {
			o.Annotations = map[string]string{namespaceuid.Annotation: "uid-of-team-a"}
		}, patches: 1, want: result{out: "namespace team-a: 2 objects accepted\n2 objects in 1 namespace accepted\n"}},
		"another one has its name":   {answer: func(int) error { return conflict }, change: func(o *metav1.PartialObjectMetadata) { renewed(o) }, patches: 1, want: result{out: "namespace team-a: 2 objects accepted\n2 objects in 1 namespace accepted\n"}},
		"it is being deleted by now": {answer: func(int) error { return conflict }, change: func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = &metav1.Time{Time: testNow} }, patches: 1, want: result{out: "namespace team-a: 2 objects accepted\n2 objects in 1 namespace accepted\n"}},
		"others write it all the time": {answer: func(int) error { return conflict }, patches: maxConflicts, want: result{
			out: "namespace team-a: 1 object accepted\n1 object in 1 namespace accepted\n", code: 1,
			errOut:  "jobsets.jobset.x-k8s.io team-a/a not accepted: " + conflict.Error() + "\n",
			message: "1 object was not accepted: correct the causes above and run the command again",
		}},
		"the server knows another namespace": {answer: func(int) error { return nil }, recorded: "uid-of-next", patches: 1, want: result{
			out: "namespace team-a: 1 object accepted\n1 object in 1 namespace accepted\n", code: 1,
			errOut: "jobsets.jobset.x-k8s.io team-a/a not accepted: the server did not record the namespace: it was deleted and created again in between, " +
				"or the server has not seen it yet; run the command again\n",
			message: "1 object was not accepted: correct the causes above and run the command again",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := stored("team-a", "JobSet", "a", "")
			m := inNamespaces(t, "", a, stored("team-a", "JobSet", "b", ""))
			attempts, mu := 0, sync.Mutex{}
			m.fakeMetadata().PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch := action.(clienttesting.PatchAction)
				if patch.GetName() != "a" {
					return false, nil, nil
				}
				mu.Lock()
				defer mu.Unlock()
				attempts++
				var sent struct{ Metadata metav1.ObjectMeta }
				if err := json.Unmarshal(patch.GetPatch(), &sent); err != nil || sent.Metadata.UID != "uid-of-a" {
					t.Errorf("the patch is %s (%v)", patch.GetPatch(), err)
				}
				err := tc.answer(attempts)
				if tc.change != nil {
					next := a.DeepCopy()
					tc.change(next)
					if err := m.fakeMetadata().Tracker().Update(action.GetResource(), next, "team-a"); err != nil {
						t.Error(err)
					}
				}
				if tc.recorded != "" {
					sent.Metadata.Annotations[namespaceuid.Annotation] = tc.recorded
				}
				return true, &metav1.PartialObjectMetadata{ObjectMeta: sent.Metadata}, err
			})
			got := m.run("accept", "--namespaces=missing")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if attempts != tc.patches {
				t.Errorf("%d patches, want %d", attempts, tc.patches)
			}
		})
	}
}
