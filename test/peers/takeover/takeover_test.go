// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestTakeOver moves running sets, and sets in all states, to our server, which runs beside the controllers of upstream, and back.
func TestTakeOver(t *testing.T) {
	const sets, lws = 10, 3
	o := begin(t, sets, lws)
	for _, s := range states() {
		s.begin(t, o)
	}
	o.note(t)
	seen := o.watch(t)
	startServer(t)
	out := migrate(t, "to-server", "--dry-run")
	for _, want := range []string{
		"jobsets.jobset.x-k8s.io: " + strconv.Itoa(o.count(jobSets)) + " objects, of which jobset-apiserver does not accept 0\n",
		"leaderworkersets.leaderworkerset.x-k8s.io: " + strconv.Itoa(o.count(leaderWorkerSets)) + " objects, of which jobset-apiserver does not accept 0\n",
		"Would save and delete the mutating webhook configuration jobset-mutating-webhook-configuration\n",
		"Would save and delete the validating webhook configuration lws-validating-webhook-configuration\n", "Writes would be refused for about ",
		"  2 are managed by example.com/other: ", "  2 are being deleted: ", "  2 place Jobs exclusively: ", "  2 restart in place: ", "  2 are in queues of Kueue: ",
	} {
		if !strings.Contains(out, want) || strings.Contains(out, "You are not allowed") {
			t.Errorf("the dry run does not say %q, or that something is missing:\n%s", want, out)
		}
	}
	o.identical(t, "after a dry run")
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	o.note(t)
	migrate(t, "to-server")
	o.identical(t, "after the move")

	controller := startController(t)
	o.label(t, seen, jobSets, "set-3", "by-our-server")
	o.label(t, seen, leaderWorkerSets, "groups-1", "by-our-server")
	o.create(t, o.newSet("late"))
	o.createLeaderWorkerSet(t, o.newLeaderWorkerSet("late"))
	o.awaitMore(t, 8)
	o.unchanged(t, "under our controller")
	o.remove(t, "set-9")
	o.delete(t, leaderWorkerSets, "groups-2")
	o.awaitMore(t, -8)
	o.goOn(t, "own")
	migrate(t, "to-server") // there is nothing left to move

	if err := controller.Terminate(); err != nil {
		t.Fatal(err)
	}
	out = migrate(t, "to-crd", "--dry-run")
	for _, want := range []string{
		"of which the CustomResourceDefinition does not accept 0\n", "get another UID, because they were created in jobset-apiserver: " + o.namespace + "/late\n",
		"are deleted in the CustomResourceDefinition: jobset-apiserver does not have them any more: ", "/set-9", "/groups-2",
		"lose what the CustomResourceDefinition does not know, status.attempts", "Would create the mutating webhook configuration lws-mutating-webhook-configuration again\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the dry run of the way back does not say %q:\n%s", want, out)
		}
	}
	o.note(t)
	migrate(t, "to-crd")
	now := o.stored(t)
	for _, late := range []string{"jobsets/late", "leaderworkersets/late"} {
		if now[late].GetUID() == o.sets[late].GetUID() {
			t.Error("a set that was created since has the same UID: the test does not see what it is to see")
		}
		o.sets[late] = now[late]
	}
	o.unchanged(t, "after the way back")
	if err := upstream.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.label(t, seen, jobSets, "set-4", "by-upstream")
	o.label(t, seen, leaderWorkerSets, "groups-0", "by-upstream")
	o.unchanged(t, "under the controllers of upstream")
	o.owned(t)
	o.goOn(t, "upstream")
	for _, set := range []string{"late", "set-0"} {
		o.remove(t, set)
	}
	o.delete(t, leaderWorkerSets, "late")
	o.awaitMore(t, -12)
	o.removeAll(t)
	o.awaitPods(t, 0)
}

// count returns how many sets there are.
func (o *takeover) count(resource schema.GroupVersionResource) (n int) {
	for key := range o.sets {
		if strings.HasPrefix(key, resource.Resource+"/") {
			n++
		}
	}
	return n
}

// awaitMore waits until so many pods more run than before, and notes what there is.
func (o *takeover) awaitMore(t *testing.T, pods int) {
	t.Helper()
	want := o.running + pods
	framework.Eventually(t, strconv.Itoa(want)+" pods run", func(ctx context.Context) error {
		_, running, err := o.children(ctx)
		if err == nil && running != want {
			err = errors.New(strconv.Itoa(running) + " run")
		}
		return err
	})
	o.note(t)
}

// watch opens informers and returns what they have seen: the labels of sets by name.
func (o *takeover) watch(t *testing.T) func(resource schema.GroupVersionResource, set string) map[string]string {
	t.Helper()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(cluster.Dynamic, 0, o.namespace, nil)
	for _, resource := range []schema.GroupVersionResource{jobSets, leaderWorkerSets} {
		factory.ForResource(resource).Informer() // makes the factory know it
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return func(resource schema.GroupVersionResource, set string) map[string]string {
		object, err := factory.ForResource(resource).Lister().ByNamespace(o.namespace).Get(set)
		if err != nil {
			return nil
		}
		return object.(*unstructured.Unstructured).GetLabels()
	}
}

// label labels a set, and waits until the informer sees it.
func (o *takeover) label(t *testing.T, seen func(schema.GroupVersionResource, string) map[string]string, resource schema.GroupVersionResource, set, label string) {
	t.Helper()
	framework.Eventually(t, "the set is labeled", func(ctx context.Context) error {
		return o.patch(ctx, resource, set, `{"metadata":{"labels":{"`+label+`":"yes"}}}`)
	})
	since := time.Now()
	framework.Eventually(t, "an informer from before sees the label", func(context.Context) error {
		if seen(resource, set)[label] == "" {
			return errors.New("it does not")
		}
		return nil
	})
	t.Logf("an informer of %s from before sees a change after %s", resource.Resource, time.Since(since).Round(time.Millisecond))
}

// patch merges a patch into an object.
func (o *takeover) patch(ctx context.Context, resource schema.GroupVersionResource, name, patch string, subresources ...string) error {
	_, err := cluster.Dynamic.Resource(resource).Namespace(o.namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}
