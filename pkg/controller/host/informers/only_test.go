// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// TestOnly has a kind that needs Jobs by what their spec says, alone and beside another kind.
func TestOnly(t *testing.T) {
	wide := func(obj runtime.Object) bool { return ptr.Deref(obj.(*batchv1.Job).Spec.Parallelism, 1) > 1 }
	for name, beside := range map[string]bool{"alone": false, "beside a kind that needs all": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				change := func(version string, parallelism int32) *batchv1.Job {
					job := newJob("x", nil, version)
					job.Spec.Parallelism = &parallelism
					return job
				}
				kube := fake.NewClientset(change("1", 2), newJob("y", nil, "2"))
				f := NewFactory(kube)
				one, all := f.For("one"), f.For("all")
				ones := one.Informer(Need{Resource: f.Jobs(), Only: wide, Transform: keepLabels, Indexers: cache.Indexers{"index": byLabel}})
				if beside {
					all.Informer(Need{Resource: f.Jobs(), Transform: keepAnnotations})
				}
				var sees seen
				ones.AddEventHandler(&sees)
				watches, err := f.Build(one, all)
				if err != nil {
					t.Fatal(err)
				}
				watches.Start(t.Context())
				diff(t, "events at first", []string{"add(true) xmap[]map[]"}, sees.take())
				diff(t, "list", []string{"x"}, names(ones.List()))
				if _, err := kube.BatchV1().Jobs("ns").Update(t.Context(), change("3", 1), metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				diff(t, "events of a Job that is needed no more", []string{"delete xmap[]map[]"}, sees.take())
				objs, err := ones.ByIndex("index", "")
				diff(t, "Jobs by index", 0, len(objs))
				diff(t, "error", nil, err)
			})
		})
	}
}
