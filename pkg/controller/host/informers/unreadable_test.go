// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	versionedfake "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// damaged returns the placeholder of a Job.
func damaged(name string, uid types.UID, labels map[string]string, version string) *batchv1.Job {
	job := newJob(name, labels, version)
	job.UID, job.Annotations = uid, map[string]string{unreadable.Annotation: "why"}
	return job
}

// TestUnreadableObjectStaysAsItWas: what it holds is still in use, unless the placeholder is for another object of the same name.
func TestUnreadableObjectStaysAsItWas(t *testing.T) {
	w := &sharedWatch{shared: cache.NewSharedIndexInformer(nil, &batchv1.Job{}, 0, nil)}
	one := &Informer{shared: w.shared}
	transform := w.keeping(func(obj any) (any, error) { return obj, nil })
	known := newJob("a", map[string]string{"a": "b"}, "1")
	known.UID = "one"
	check := func(when string, uid types.UID, wantLabels int) {
		t.Helper()
		out, err := transform(damaged("a", uid, nil, "2"))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := transform(out); again != out || err != nil {
			t.Errorf("%s: the transform does not accept its result: %v, %v", when, again, err)
		}
		job := one.part(out).(*batchv1.Job)
		if len(job.Labels) != wantLabels || !unreadable.Is(job) || job.ResourceVersion != "2" {
			t.Errorf("%s: %+v", when, job)
		}
	}
	check("not known before", "", 0)
	if err := w.shared.GetIndexer().Add(known); err != nil {
		t.Fatal(err)
	}
	check("with an unknown UID", "", 1)
	check("with its UID", "one", 1)
	check("another object", "two", 0)
	if unreadable.Is(known) {
		t.Error("the cached object was changed")
	}
}

// small is what a kind keeps of a JobSet that is less than an object.
type small struct {
	metav1.ObjectMeta
	jobs int
}

func (s *small) GetObjectMeta() metav1.Object { return &s.ObjectMeta }

func keepSmall(obj any) (any, error) {
	js, ok := obj.(*jobsetv1alpha2.JobSet)
	if !ok {
		return obj, nil
	}
	return &small{metav1.ObjectMeta{Namespace: js.Namespace, Name: js.Name, UID: js.UID}, len(js.Spec.ReplicatedJobs)}, nil
}

func newJobSet(name string, uid types.UID, labels, annotations map[string]string) *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Labels: labels, Annotations: annotations}}
}

// TestUnreadable has a kind that keeps little of objects with a label, alone and beside one that needs all. It sees what it knew of an
// object that cannot be read any more, and which objects may be its own.
func TestUnreadable(t *testing.T) {
	for name, beside := range map[string]bool{"alone": false, "beside a kind that needs all": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testUnreadable(t, beside) })
		})
	}
}

func testUnreadable(t *testing.T, beside bool) {
	mine, mark := map[string]string{"a": "1"}, map[string]string{unreadable.Annotation: "why"}
	known := newJobSet("known", "known", mine, nil)
	known.Spec.ReplicatedJobs = make([]jobsetv1alpha2.ReplicatedJob, 3)
	client := versionedfake.NewClientset(known, newJobSet("foreign", "f", nil, nil), newJobSet("labeled", "l", mine, mark),
		newJobSet("other", "o", nil, mark), newJobSet("nameless", "", nil, mark))
	f, gv := NewFactory(fake.NewClientset()), jobsetv1alpha2.SchemeGroupVersion
	sets := NewResource(f.Aggregated(gv), gv.WithResource("jobsets"), &jobsetv1alpha2.JobSet{}, client, client.JobsetV1alpha2().JobSets(""))
	one, all := f.For("one"), f.For("all")
	ones := one.Informer(Need{Resource: sets, Label: "a", Unlabeled: true, Transform: keepSmall})
	if beside {
		all.Informer(Need{Resource: sets, Transform: func(obj any) (any, error) { return obj, nil }})
	}
	watches, err := f.Build(one, all)
	if err != nil {
		t.Fatal(err)
	}
	watches.Start(t.Context())
	check := func(when string, want map[string]int, err error) {
		t.Helper()
		diff(t, when+": error of the change", nil, err)
		synctest.Wait()
		list, err := ones.Unreadable("ns")
		diff(t, when+": error", nil, err)
		got := map[string]int{}
		for _, p := range list {
			got[p.Name] = 0
			if part, seen := p.Part.(*small); seen {
				got[p.Name] = part.jobs
			}
			diff(t, when+": cause of "+p.Name, "why", p.Cause)
		}
		diff(t, when, want, got)
	}
	check("at first", map[string]int{"labeled": 0, "nameless": 0}, nil)
	diff(t, "objects that the kind sees", 2, len(ones.List()))
	api := client.JobsetV1alpha2().JobSets("ns")
	_, err = api.Update(t.Context(), newJobSet("known", "", nil, mark), metav1.UpdateOptions{})
	check("another one is damaged", map[string]int{"labeled": 0, "nameless": 0, "known": 3}, err)
	_, err = api.Update(t.Context(), known, metav1.UpdateOptions{})
	check("it is repaired", map[string]int{"labeled": 0, "nameless": 0}, err)
	check("one is removed", map[string]int{"labeled": 0}, api.Delete(t.Context(), "nameless", metav1.DeleteOptions{}))
}

// TestMarkOfOtherServersMeansNothing: a user can write the annotation on a Job, or in a template of pods. What the controller knows of it
// still changes.
func TestMarkOfOtherServersMeansNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := newJob("a", nil, "1")
		kube := fake.NewClientset(job)
		f := NewFactory(kube)
		kind := f.For("one")
		jobs := kind.Informer(Need{Resource: f.Jobs(), Transform: func(obj any) (any, error) { return obj, nil }})
		watches, err := f.Build(kind)
		if err != nil {
			t.Fatal(err)
		}
		watches.Start(t.Context())
		synctest.Wait()
		marked := damaged("a", "", nil, "2")
		marked.Status.Failed = 3
		if _, err := kube.BatchV1().Jobs("ns").Update(t.Context(), marked, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		obj, err := jobs.GetByKey("ns/a")
		if seen, ok := obj.(*batchv1.Job); err != nil || !ok || seen.Status.Failed != 3 {
			t.Errorf("the cache has %+v, %v", obj, err)
		}
	})
}
