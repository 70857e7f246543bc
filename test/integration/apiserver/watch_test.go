// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// next returns the next event that is not a bookmark; what counts is its type and the name of its object.
func next(t *testing.T, w watch.Interface) (watch.EventType, *jobsetv1alpha2.JobSet) {
	t.Helper()
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch has ended")
			}
			if event.Type == watch.Bookmark {
				continue
			}
			js, ok := event.Object.(*jobsetv1alpha2.JobSet)
			if !ok {
				t.Fatalf("%s of %v", event.Type, event.Object)
			}
			return event.Type, js
		case <-time.After(framework.StepTimeout()):
			t.Fatal("no event")
		}
	}
}

// bookmark returns the first bookmark of a watch.
func bookmark(w watch.Interface) (*jobsetv1alpha2.JobSet, error) {
	timeout := time.After(framework.StepTimeout())
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return nil, errors.New("the watch has ended")
			}
			if event.Type == watch.Bookmark {
				return event.Object.(*jobsetv1alpha2.JobSet), nil
			}
		case <-timeout:
			return nil, errors.New("no bookmark")
		}
	}
}

func testWatch(t *testing.T, e *env) {
	list, err := e.typed.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A watch that ends soon gets its bookmark two seconds before. The changes below take much less time than that, also on a busy machine.
	// The watch begins before them, because the watch cache of k8s.io/apiserver (cacheWatcher.process) drops bookmarks that are not newer than
	// what a watch began with: one that is opened after the last change gets no bookmark until something of the kind changes in any namespace.
	w, err := e.typed.Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true, TimeoutSeconds: ptr.To[int64](20),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e.create(t, jobSet("a"))
	if _, err := e.typed.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := e.typed.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []watch.EventType
	var last *jobsetv1alpha2.JobSet
	for range 3 {
		kind, js := next(t, w)
		got, last = append(got, kind), js
	}
	if diff := cmp.Diff([]watch.EventType{watch.Added, watch.Modified, watch.Deleted}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	mark, err := bookmark(w)
	if err != nil {
		t.Fatal(err)
	}
	if order, err := resourceversion.CompareResourceVersion(mark.ResourceVersion, last.ResourceVersion); err != nil || order < 0 {
		t.Errorf("the bookmark is at %s, before the last event at %s: %v", mark.ResourceVersion, last.ResourceVersion, err)
	}
}

func testStreamingList(t *testing.T, e *env) {
	e.create(t, jobSet("a"))
	e.create(t, jobSet("b"))
	w, err := e.typed.Watch(t.Context(), metav1.ListOptions{
		AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var names []string
	for range 2 {
		kind, js := next(t, w)
		if kind != watch.Added {
			t.Errorf("initial event is %s", kind)
		}
		names = append(names, js.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("initial objects (-want +got):\n%s", diff)
	}
	mark, err := bookmark(w)
	if err != nil {
		t.Fatal(err)
	}
	if mark.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("the end of the initial list is not marked: %+v", mark.ObjectMeta)
	}
}

// names lists what the options select, in order.
func (e *env) names(t *testing.T, options metav1.ListOptions) []string {
	t.Helper()
	list, err := e.typed.List(t.Context(), options)
	if err != nil {
		t.Fatalf("%+v: %v", options, err)
	}
	var names []string
	for _, js := range list.Items {
		names = append(names, js.Name)
	}
	return names
}

func testList(t *testing.T, e *env) {
	for i := range 4 {
		e.create(t, jobSet(fmt.Sprintf("a%d", i), func(js *jobsetv1alpha2.JobSet) {
			js.Labels = map[string]string{"n": fmt.Sprint(i)}
			js.Spec.Suspend = map[int]*bool{1: ptr.To(true), 2: ptr.To(false)}[i]
		}))
	}
	if _, err := e.typed.Patch(t.Context(), "a3", types.MergePatchType, []byte(`{"status":{"terminalState":"Completed"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		options metav1.ListOptions
		want    []string
	}{
		"everything":                {want: []string{"a0", "a1", "a2", "a3"}},
		"by label":                  {options: metav1.ListOptions{LabelSelector: "n in (0,3)"}, want: []string{"a0", "a3"}},
		"by name":                   {options: metav1.ListOptions{FieldSelector: "metadata.name=a1"}, want: []string{"a1"}},
		"by namespace":              {options: metav1.ListOptions{FieldSelector: "metadata.namespace=" + e.namespace}, want: []string{"a0", "a1", "a2", "a3"}},
		"suspended":                 {options: metav1.ListOptions{FieldSelector: "spec.suspend=true"}, want: []string{"a1"}},
		"not suspended":             {options: metav1.ListOptions{FieldSelector: "spec.suspend=false"}, want: []string{"a0", "a2", "a3"}},
		"finished":                  {options: metav1.ListOptions{FieldSelector: "status.terminalState=Completed"}, want: []string{"a3"}},
		"unfinished, not suspended": {options: metav1.ListOptions{FieldSelector: "status.terminalState=,spec.suspend!=true"}, want: []string{"a0", "a2"}},
		"from the cache":            {options: metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=a2"}, want: []string{"a2"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, e.names(t, c.options)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := e.typed.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.network=x"}); err == nil {
		t.Error("a field that cannot be selected by is accepted")
	}

	first, err := e.typed.List(t.Context(), metav1.ListOptions{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Items) != 3 || ptr.Deref(first.RemainingItemCount, 0) != 1 {
		t.Errorf("first page has %d items and %v remain", len(first.Items), first.RemainingItemCount)
	}
	if diff := cmp.Diff([]string{"a3"}, e.names(t, metav1.ListOptions{Limit: 3, Continue: first.Continue})); diff != "" {
		t.Errorf("second page (-want +got):\n%s", diff)
	}
}

func testWatchSelectors(t *testing.T, e *env) {
	w, err := e.typed.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.suspend=true,metadata.name=b"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	suspended := func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) }
	e.create(t, jobSet("a", suspended))
	e.create(t, jobSet("b", suspended))
	if kind, js := next(t, w); kind != watch.Added || js.Name != "b" {
		t.Errorf("first event is %s of %s", kind, js.Name)
	}
	// What no longer matches is gone for this watch.
	if _, err := e.typed.Patch(t.Context(), "b", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if kind, js := next(t, w); kind != watch.Deleted || js.Name != "b" {
		t.Errorf("second event is %s of %s", kind, js.Name)
	}
}

func testInformer(t *testing.T, e *env) {
	client, err := versioned.NewForConfig(rest.CopyConfig(e.config))
	if err != nil {
		t.Fatal(err)
	}
	e.create(t, jobSet("a"))
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(e.namespace))
	informer := factory.Jobset().V1alpha2().JobSets()
	synced := informer.Informer().HasSynced
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("the informer does not sync")
	}
	e.create(t, jobSet("b"))
	framework.Eventually(t, "the lister knows both", func(context.Context) error {
		all, err := informer.Lister().JobSets(e.namespace).List(labels.Everything())
		if err == nil && len(all) != 2 {
			err = fmt.Errorf("it knows %d", len(all))
		}
		return err
	})
}
