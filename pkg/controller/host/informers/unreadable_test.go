// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// TestUnreadableObjectStaysAsItWas: what it holds is still in use, unless the placeholder is for another object of the same name.
func TestUnreadableObjectStaysAsItWas(t *testing.T) {
	w := &sharedWatch{shared: cache.NewSharedIndexInformer(nil, &batchv1.Job{}, 0, nil)}
	transform := w.keeping(func(obj any) (any, error) { return obj, nil })
	placeholder := func(uid types.UID) *batchv1.Job {
		job := newJob("a", nil, "2")
		job.UID, job.Annotations = uid, map[string]string{unreadable.Annotation: "why"}
		return job
	}
	known := newJob("a", map[string]string{"a": "b"}, "1")
	known.UID = "one"
	check := func(when string, uid types.UID, wantLabels int) {
		t.Helper()
		out, err := transform(placeholder(uid))
		if err != nil {
			t.Fatal(err)
		}
		job := out.(*batchv1.Job)
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
