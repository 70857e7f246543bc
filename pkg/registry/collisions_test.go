// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/collisions"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/neighbors"
)

func resourceOf(obj runtime.Object) schema.GroupResource {
	switch obj.(type) {
	case *jobset.JobSet:
		return jobset.Resource("jobsets")
	case *batch.SequentialJob:
		return batch.Resource("sequentialjobs")
	case *leaderworkerset.LeaderWorkerSet:
		return leaderworkerset.Resource("leaderworkersets")
	case *disaggregatedset.DisaggregatedSetRoleScaler:
		return disaggregatedset.Resource("disaggregatedsetrolescalers")
	}
	return schema.GroupResource{}
}

// serving returns Neighbors of a server that has the objects, and counts what is read.
func serving(t *testing.T, exist ...runtime.Object) (n *neighbors.Neighbors, asked *int) {
	t.Helper()
	n, asked = neighbors.New(), new(int)
	for _, example := range []runtime.Object{&jobset.JobSet{}, &batch.SequentialJob{}, &leaderworkerset.LeaderWorkerSet{}, &disaggregatedset.DisaggregatedSetRoleScaler{}} {
		resource := resourceOf(example)
		n.Serve(resource, func(_ context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
			*asked++
			if options.ResourceVersion != "0" {
				t.Errorf("%s %s is not read from the cache", resource, name)
			}
			for _, obj := range exist {
				if obj.(metav1.Object).GetName() == name && resourceOf(obj) == resource {
					return obj, nil
				}
			}
			return nil, apierrors.NewNotFound(resource, name)
		})
	}
	return n, asked
}

// expect creates an object beside others, and compares the warnings. It returns how many objects were read.
func expect(t *testing.T, exist []runtime.Object, created runtime.Object, want ...string) int {
	t.Helper()
	n, asked := serving(t, exist...)
	l := n.Look(t.Context())
	collisions.Find(l, created)
	if diff := cmp.Diff(want, l.Warnings()); diff != "" {
		t.Error("warnings (-want +got):\n" + diff)
	}
	if *asked > neighbors.MaxReads {
		t.Errorf("%d objects are read, want %d at most", *asked, neighbors.MaxReads)
	}
	return *asked
}

// recorder collects warnings.
type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

// TestWhoIsWarned creates a JobSet with the name of a step: by a user, by a sequence, and in vain.
func TestWhoIsWarned(t *testing.T) {
	sj := sequence("etl", job)
	for name, c := range map[string]struct {
		change func(*jobset.JobSet)
		failed bool
		want   int
	}{
		"a user":                        {want: 1},
		"a user who creates it in vain": {failed: true},
		"a controller": {change: func(js *jobset.JobSet) {
			js.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sj, schema.GroupVersionKind{Kind: "SequentialJob"})}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n, asked := serving(t, sj)
			js := jobSet("etl", "w", 1)
			js.Name = "etl-0"
			if sj.Spec.Steps[0] = jobSetStepOf("w"); c.change != nil {
				c.change(js)
			}
			r := &recorder{}
			finish, err := n.BeginCreate(collisions.Find)(warning.WithWarningRecorder(t.Context(), r), js, nil)
			if err != nil {
				t.Fatal(err)
			}
			if *asked != 0 {
				t.Error("objects are read before it is known whether the object is valid")
			}
			if finish(t.Context(), !c.failed); len(r.texts) != c.want || c.want == 0 && *asked != 0 {
				t.Errorf("%d reads, warnings %q, want %d", *asked, r.texts, c.want)
			}
		})
	}
	var none *neighbors.Neighbors
	none.Serve(jobset.Resource("jobsets"), nil)
	if finish, err := none.BeginCreate(collisions.Find)(t.Context(), jobSet("a", "w", 1), nil); err != nil {
		t.Error(err)
	} else {
		finish(t.Context(), true)
	}
}

// TestReadsAreBounded creates objects with as many names as validation accepts.
func TestReadsAreBounded(t *testing.T) {
	many := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "a-b-c"}}
	for i := range 2000 {
		many.Spec.ReplicatedJobs = append(many.Spec.ReplicatedJobs, jobset.ReplicatedJob{Name: fmt.Sprintf("x-y-z-%d", i)})
	}
	expect(t, nil, many)
	long := sequence("e-t-l", slices.Repeat([]string{job}, 100)...)
	for i := range long.Spec.Steps {
		long.Spec.Steps[i] = jobSetStepOf("a-b-c-d")
	}
	expect(t, nil, long)
	var exist []runtime.Object
	for i := range 100 {
		exist = append(exist, jobSet(fmt.Sprintf("e-t-l-%d", i), "w", 1))
	}
	n, _ := serving(t, exist...)
	l := n.Look(t.Context())
	if collisions.Find(l, long); len(l.Warnings()) != neighbors.MaxWarnings {
		t.Errorf("%d warnings, want %d", len(l.Warnings()), neighbors.MaxWarnings)
	}
}

const job = "job"

func jobSet(name, replicatedJob string, replicas int32, change ...func(*jobset.JobSet)) *jobset.JobSet {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: replicatedJob, Replicas: &replicas}}
	for _, f := range change {
		f(js)
	}
	return js
}

// subdomain gives a JobSet a Service. If the name is empty, the Service has the name of the set.
func subdomain(name string) func(*jobset.JobSet) {
	return func(js *jobset.JobSet) {
		js.Spec.Network = &jobset.Network{EnableDNSHostnames: ptr.To(true), Subdomain: name}
	}
}

func elsewhere(js *jobset.JobSet) { js.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }

func goes(js *jobset.JobSet) { js.DeletionTimestamp = &metav1.Time{} }

// sequence returns one with a step for each kind.
func sequence(name string, kinds ...string) *batch.SequentialJob {
	sj := &batch.SequentialJob{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	for _, kind := range kinds {
		if step := (batch.SequentialJobStep{}); kind == job {
			sj.Spec.Steps = append(sj.Spec.Steps, step)
		} else {
			sj.Spec.Steps = append(sj.Spec.Steps, jobSetStepOf(strings.TrimPrefix(kind, "jobSet/")))
		}
	}
	return sj
}

func jobSetStepOf(replicatedJob string) batch.SequentialJobStep {
	template := &batch.JobSetTemplateSpec{}
	template.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: replicatedJob}}
	return batch.SequentialJobStep{JobSet: template}
}
