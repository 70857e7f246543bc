// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// keepLabels and keepAnnotations are the transforms of two kinds. The one drops what the other keeps.
func keepLabels(obj any) (any, error) {
	job := obj.(*batchv1.Job)
	job.Annotations = nil
	return job, nil
}

func keepAnnotations(obj any) (any, error) {
	job := obj.(*batchv1.Job)
	job.Labels = nil
	return job, nil
}

func byLabel(obj any) ([]string, error) { return []string{obj.(*batchv1.Job).Labels["a"]}, nil }
func byAnnotation(obj any) ([]string, error) {
	return []string{obj.(*batchv1.Job).Annotations["n"]}, nil
}

func newJob(name string, labels map[string]string, version string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: version, Labels: labels, Annotations: map[string]string{"n": name},
	}}
}

// seen is a handler that notes what a kind is shown.
type seen struct {
	mu    sync.Mutex
	notes []string
}

func (s *seen) note(what string, objs ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, obj := range objs {
		job := obj.(*batchv1.Job)
		what += fmt.Sprintf(" %s%v%v", job.Name, job.Labels, job.Annotations)
	}
	s.notes = append(s.notes, what)
}

func (s *seen) OnAdd(obj any, initial bool) { s.note(fmt.Sprintf("add(%t)", initial), obj) }
func (s *seen) OnUpdate(was, is any)        { s.note("update", was, is) }
func (s *seen) OnDelete(obj any)            { s.note("delete", obj) }

// take returns the notes since the last call, in no order.
func (s *seen) take() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.notes = nil }()
	slices.Sort(s.notes)
	return s.notes
}

func names(objs []any) []string {
	var out []string
	for _, obj := range objs {
		out = append(out, obj.(*batchv1.Job).Name)
	}
	slices.Sort(out)
	return out
}

// TestKindsShareWatches counts the watches of kinds that need Jobs.
func TestKindsShareWatches(t *testing.T) {
	for name, tc := range map[string]struct {
		labels, want []string
	}{
		"one kind":                              {[]string{"a"}, []string{"a"}},
		"kinds with the same label":             {[]string{"a", "a"}, []string{"a"}},
		"kinds with labels of their own":        {[]string{"a", "b"}, []string{"a", "b"}},
		"kinds of which one needs all":          {[]string{"a", "", "b"}, []string{""}},
		"kinds of which the last one needs all": {[]string{"a", "a", ""}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kube := fake.NewClientset()
				f := NewFactory(kube)
				var kinds []*Kind
				for n, label := range tc.labels {
					kind := f.For(fmt.Sprint(n))
					kind.Informer(Need{Resource: f.Jobs(), Label: label, Transform: keepLabels})
					kinds = append(kinds, kind)
				}
				watches, err := f.Build(kinds...)
				if err != nil {
					t.Fatal(err)
				}
				watches.Start(t.Context())
				synctest.Wait()
				var got []string
				for _, action := range kube.Actions() {
					if watch, ok := action.(clientgotesting.WatchAction); ok {
						got = append(got, watch.GetWatchRestrictions().Labels.String())
					}
				}
				slices.Sort(got)
				diff(t, "label selectors of watches", tc.want, got)
				for _, kind := range kinds {
					diff(t, "caches that are not filled", 0, len(kind.Unfilled()))
				}
			})
		})
	}
}

// TestEachKindSeesWhatItNeeds has one kind that needs all Jobs, and one that needs those with a label.
func TestEachKindSeesWhatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labeled, plain := newJob("x", map[string]string{"a": "1"}, "1"), newJob("y", nil, "2")
		kube := fake.NewClientset(labeled, plain)
		f := NewFactory(kube)
		one, all := f.For("one"), f.For("all")
		ones := one.Informer(Need{Resource: f.Jobs(), Label: "a", Transform: keepLabels, Indexers: cache.Indexers{"index": byLabel}})
		alls := all.Informer(Need{Resource: f.Jobs(), Transform: keepAnnotations, Indexers: cache.Indexers{"index": byAnnotation}})
		var oneSees, allSees seen
		ones.AddEventHandler(&oneSees)
		alls.AddEventHandler(&allSees)
		diff(t, "caches that are not filled", []string{"jobs"}, one.Unfilled())
		watches, err := f.Build(one, all)
		if err != nil {
			t.Fatal(err)
		}
		watches.Start(t.Context())
		diff(t, "the one at first", []string{"add(true) xmap[a:1]map[]"}, oneSees.take())
		diff(t, "all at first", []string{"add(true) xmap[]map[n:x]", "add(true) ymap[]map[n:y]"}, allSees.take())

		diff(t, "list of the one", []string{"x"}, names(ones.List()))
		diff(t, "list of all", []string{"x", "y"}, names(alls.List()))
		for key, want := range map[string]bool{"ns/x": true, "ns/y": false, "ns/z": false} {
			obj, err := ones.GetByKey(key)
			diff(t, key, want, obj != nil && err == nil)
		}
		byIndex := func(i *Informer, value string) []string {
			objs, err := i.ByIndex("index", value)
			if err != nil {
				t.Fatal(err)
			}
			return names(objs)
		}
		diff(t, "index of the one", []string{"x"}, byIndex(ones, "1"))
		diff(t, "index of the one, by what the other kind has", 0, len(byIndex(ones, "x")))
		diff(t, "index of all", []string{"y"}, byIndex(alls, "y"))
		diff(t, "version", ones.LastStoreSyncResourceVersion(), alls.LastStoreSyncResourceVersion())

		update := func(job *batchv1.Job) {
			if _, err := kube.BatchV1().Jobs("ns").Update(t.Context(), job, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		update(newJob("x", map[string]string{"a": "2"}, "3"))
		diff(t, "the one when its object changes", []string{"update xmap[a:1]map[] xmap[a:2]map[]"}, oneSees.take())
		update(newJob("x", nil, "4"))
		diff(t, "the one when its object loses the label", []string{"delete xmap[a:2]map[]"}, oneSees.take())
		update(newJob("y", map[string]string{"a": "3"}, "5"))
		diff(t, "the one when an object gets the label", []string{"add(false) ymap[a:3]map[]"}, oneSees.take())
		for _, name := range []string{"x", "y"} {
			if err := kube.BatchV1().Jobs("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		diff(t, "the one when the objects are gone", []string{"delete ymap[a:3]map[]"}, oneSees.take())
		diff(t, "all afterwards", []string{
			"delete xmap[]map[n:x]", "delete ymap[]map[n:y]",
			"update xmap[]map[n:x] xmap[]map[n:x]", "update xmap[]map[n:x] xmap[]map[n:x]", "update ymap[]map[n:y] ymap[]map[n:y]",
		}, allSees.take())
	})
}

// TestResourcesAreWatched fills a cache of each resource, by its name in the API.
func TestResourcesAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset()
		f := NewFactory(kube)
		kind := f.For("one")
		var want, got []string
		for _, resource := range []Resource{f.Jobs(), f.Services(), f.Pods(), f.Claims(), f.StatefulSets(), f.Nodes()} {
			kind.Informer(Need{Resource: resource, Transform: keepLabels})
			want = append(want, resource.String())
		}
		watches, err := f.Build(kind)
		if err != nil {
			t.Fatal(err)
		}
		watches.Start(t.Context())
		synctest.Wait()
		for _, action := range kube.Actions() {
			if action.GetVerb() == "watch" {
				got = append(got, action.GetResource().String())
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		diff(t, "resources that are watched", want, got)
		diff(t, "caches that are not filled", 0, len(kind.Unfilled()))
	})
}

// TestAMissedDeletionIsOneOfThePart delivers what an informer knows of an object whose deletion it has missed.
func TestAMissedDeletionIsOneOfThePart(t *testing.T) {
	f := NewFactory(fake.NewClientset())
	one, all := f.For("one"), f.For("all")
	ones, alls := one.Informer(Need{Resource: f.Jobs(), Label: "a", Transform: keepLabels}), all.Informer(Need{Resource: f.Jobs(), Transform: keepAnnotations})
	watches, err := f.Build(one, all)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := watches.all[0].split(newJob("x", nil, "1"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := watches.all[0].split(kept)
	if err != nil || again != kept {
		t.Errorf("splitting twice: %v (%v)", again, err)
	}
	var got []any
	handler := cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { got = append(got, obj) }}
	for _, i := range []*Informer{ones, alls} {
		i.handle(handler).OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/x", Obj: kept})
	}
	want := newJob("x", nil, "1")
	diff(t, "deletions that the watch has missed", []any{want}, got)
}

func TestASingleKindKeepsNothingElse(t *testing.T) {
	f := NewFactory(fake.NewClientset())
	kind := f.For("one")
	informer := kind.Informer(Need{Resource: f.Jobs(), Label: "a", Transform: keepLabels})
	watches, err := f.Build(kind)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := watches.all[0].transform()(newJob("x", nil, "1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := informer.GetIndexer().Add(kept); err != nil {
		t.Fatal(err)
	}
	if _, ok := kept.(*batchv1.Job); !ok {
		t.Errorf("the cache holds a %T", kept)
	}
	diff(t, "list", []string{"x"}, names(informer.List()))
}
