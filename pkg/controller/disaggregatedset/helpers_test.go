// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	versionedfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

var (
	key        = cache.NewObjectName("ml", "llm")
	errRefused = errors.New("refused")
)

// rig is a controller with clients that keep what they are given, and that number and check versions as servers do.
type rig struct {
	*Controller
	kube   *fake.Clientset
	client *versionedfake.Clientset
	events *recorder
	// watches fill the caches once they are started; tests that do not start them fill the caches with cached.
	watches *informers.Watches

	mu sync.Mutex
	// version is the newest one, writes are the requests that change something, and own are the verbs and resources that
	// the controller asked for.
	version int
	writes  []string
	own     map[string]bool
	syncing bool
}

func newRig(t *testing.T, objects ...runtime.Object) *rig {
	t.Helper()
	return newRigAt(t, clock.RealClock{}, objects...)
}

// newRigAt returns a rig with a clock.
func newRigAt(t *testing.T, now clock.PassiveClock, objects ...runtime.Object) *rig {
	t.Helper()
	r := &rig{kube: fake.NewClientset(), client: versionedfake.NewClientset(objects...), events: &recorder{}, version: 100, own: map[string]bool{}}
	for _, c := range []*clientgotesting.Fake{&r.kube.Fake, &r.client.Fake} {
		tracker := r.client.Tracker()
		if c == &r.kube.Fake {
			tracker = r.kube.Tracker()
		}
		c.PrependReactor("create", "*", r.create)
		c.PrependReactor("patch", "*", r.patch(tracker))
		c.PrependReactor("update", "*", r.update(tracker))
		c.PrependReactor("delete", "*", remove(tracker))
		c.PrependReactor("*", "*", r.record)
	}
	factory := informers.NewFactory(r.kube)
	kind := factory.For(Name)
	var err error
	r.Controller, err = New(Config{Client: r.client, Kube: r.kube, Informers: kind, Recorder: r.events, Clock: now, Workers: 2})
	if err == nil {
		r.watches, err = factory.Build(kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) record(action clientgotesting.Action) (bool, runtime.Object, error) {
	resource := action.GetResource().Resource
	if action.GetSubresource() != "" {
		resource += "/" + action.GetSubresource()
	}
	line := action.GetVerb() + " " + resource
	switch a := action.(type) {
	case clientgotesting.CreateAction:
		line += " " + a.GetObject().(metav1.Object).GetName()
	case clientgotesting.DeleteActionImpl:
		line += fmt.Sprintf(" %s %s %s", a.GetName(), *a.DeleteOptions.PropagationPolicy, *a.DeleteOptions.Preconditions.UID)
	case clientgotesting.PatchAction:
		line += " " + a.GetName() + " " + string(a.GetPatch())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.syncing {
		r.own[action.GetVerb()+" "+resource] = true
	}
	if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
		r.writes = append(r.writes, line)
	}
	return false, nil, nil
}

func (r *rig) next() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	return strconv.Itoa(r.version)
}

// create gives a new object its UID and its version.
func (r *rig) create(action clientgotesting.Action) (bool, runtime.Object, error) {
	obj := action.(clientgotesting.CreateAction).GetObject().(metav1.Object)
	version := r.next()
	obj.SetResourceVersion(version)
	obj.SetUID(types.UID("uid-" + version))
	return false, nil, nil
}

// patch refuses patches of outdated versions.
func (r *rig) patch(tracker clientgotesting.ObjectTracker) clientgotesting.ReactionFunc {
	return func(action clientgotesting.Action) (bool, runtime.Object, error) {
		a := action.(clientgotesting.PatchAction)
		var steps []struct {
			Path  string
			Value any
		}
		if err := json.Unmarshal(a.GetPatch(), &steps); err != nil {
			return true, nil, err
		}
		stored, err := tracker.Get(a.GetResource(), a.GetNamespace(), a.GetName())
		if err != nil {
			return true, nil, err
		}
		if version := stored.(metav1.Object).GetResourceVersion(); steps[0].Path != "/metadata/resourceVersion" || steps[0].Value != version {
			return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), a.GetName(), errRefused)
		}
		_, obj, err := clientgotesting.ObjectReaction(tracker)(action)
		if err != nil {
			return true, nil, err
		}
		obj.(metav1.Object).SetResourceVersion(r.next())
		return true, obj, tracker.Update(a.GetResource(), obj, a.GetNamespace())
	}
}

// update refuses updates of outdated versions.
func (r *rig) update(tracker clientgotesting.ObjectTracker) clientgotesting.ReactionFunc {
	return func(action clientgotesting.Action) (bool, runtime.Object, error) {
		next := action.(clientgotesting.UpdateAction).GetObject().DeepCopyObject()
		obj := next.(metav1.Object)
		stored, err := tracker.Get(action.GetResource(), obj.GetNamespace(), obj.GetName())
		if err != nil {
			return true, nil, err
		}
		if stored.(metav1.Object).GetResourceVersion() != obj.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), obj.GetName(), errRefused)
		}
		obj.SetResourceVersion(r.next())
		return true, next, tracker.Update(action.GetResource(), next, obj.GetNamespace())
	}
}

// remove refuses to delete another incarnation than the one that is meant.
func remove(tracker clientgotesting.ObjectTracker) clientgotesting.ReactionFunc {
	return func(action clientgotesting.Action) (bool, runtime.Object, error) {
		a := action.(clientgotesting.DeleteActionImpl)
		stored, err := tracker.Get(a.GetResource(), a.GetNamespace(), a.GetName())
		if err != nil {
			return true, nil, err
		}
		if want := a.DeleteOptions.Preconditions; want == nil || *want.UID != stored.(metav1.Object).GetUID() {
			return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), a.GetName(), errRefused)
		}
		return false, nil, nil
	}
}

// refuse makes an API refuse requests about one object.
func (r *rig) refuse(verb, resource, name string, err error) {
	for _, c := range []*clientgotesting.Fake{&r.kube.Fake, &r.client.Fake} {
		c.PrependReactor(verb, resource, func(action clientgotesting.Action) (bool, runtime.Object, error) {
			var got string
			switch a := action.(type) {
			case clientgotesting.CreateAction:
				got = a.GetObject().(metav1.Object).GetName()
			case clientgotesting.PatchAction:
				got = a.GetName()
			case clientgotesting.DeleteAction:
				got = a.GetName()
			}
			return strings.HasSuffix(got, name), nil, err
		})
	}
}

// written returns the writes since it was asked last, but for those of the status of the set.
func (r *rig) written() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.writes = nil }()
	return slices.DeleteFunc(r.writes, func(line string) bool { return strings.HasPrefix(line, "update disaggregatedsets/status ") })
}

// pass makes one pass on current caches, and returns what it wrote.
func (r *rig) pass(t *testing.T) ([]string, error) {
	t.Helper()
	r.cached(t)
	r.written()
	err := r.run(t)
	return r.written(), err
}

// run makes one pass on the caches as they are.
func (r *rig) run(t *testing.T) error {
	t.Helper()
	during := func(value bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.syncing = value
	}
	during(true)
	defer during(false)
	_, err := r.Sync(t.Context(), key)
	return err
}

// ready makes all groups ready.
func (r *rig) ready(t *testing.T) {
	t.Helper()
	client := r.client.LeaderworkersetV1().LeaderWorkerSets("ml")
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		n := *list.Items[i].Spec.Replicas
		list.Items[i].Status.Replicas, list.Items[i].Status.ReadyReplicas, list.Items[i].Status.UpdatedReplicas = n, n, n
		if _, err := client.UpdateStatus(t.Context(), &list.Items[i], metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// stabilize makes passes, all groups ready after each, until one writes nothing, and returns all writes.
func (r *rig) stabilize(t *testing.T) (all []string) {
	t.Helper()
	for range 60 {
		writes, err := r.pass(t)
		if err != nil {
			t.Fatal(err)
		}
		r.ready(t)
		if all = append(all, writes...); len(writes) == 0 {
			return all
		}
	}
	t.Fatalf("it does not come to rest:\n%s", strings.Join(all, "\n"))
	return nil
}

// set returns the set as stored.
func (r *rig) set(t *testing.T) *disaggregatedsetv1.DisaggregatedSet {
	t.Helper()
	ds, err := r.client.DisaggregatedsetV1().DisaggregatedSets("ml").Get(t.Context(), "llm", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// edit changes the spec of the set as a user does.
func (r *rig) edit(t *testing.T, change func(*disaggregatedsetv1.DisaggregatedSet)) {
	t.Helper()
	ds := r.set(t)
	change(ds)
	ds.Generation++
	if _, err := r.client.DisaggregatedsetV1().DisaggregatedSets("ml").Update(t.Context(), ds, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
