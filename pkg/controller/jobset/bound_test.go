// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// TestFullPlansAreContinuedAtOnce syncs a set of 1200 Jobs until all are there, with caches that show what was written, and a
// Job controller that takes care of them at once.
func TestFullPlansAreContinuedAtOnce(t *testing.T) {
	const all = 1200
	set := newSet()
	set.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](all)
	r := newRig(t, set)
	r.kube.PrependReactor("create", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		return true, action.(clientgotesting.CreateAction).GetObject(), nil
	})
	obs := &plan.Observed{JobSet: set, ServiceExists: true}
	created := 0
	for _, want := range []int{500, 1000, all} {
		p := plan.Decide(*obs)
		out, err := r.carryOut(t.Context(), obs, p)
		if err != nil {
			t.Fatal(err)
		}
		created += len(p.CreateJobs)
		diff(t, "Jobs created so far", want, created)
		if out.Continue != (want < all) {
			t.Errorf("after %d Jobs the set is continued: %t", want, out.Continue)
		}
		for _, job := range p.CreateJobs {
			job.Status.StartTime = &metav1.Time{}
		}
		obs.Jobs = append(obs.Jobs, p.CreateJobs...)
	}
	diff(t, "requests", all, len(r.requests()))
}

func TestRejectedFullPlansAreRetriedByTheQueue(t *testing.T) {
	set := newSet()
	p := plan.Plan{More: true, CreateJobs: []*batchv1.Job{newJob("js-w-0", set)}, DeleteJobs: []plan.JobRef{{Name: "old", UID: "uid-old"}}}
	r := newRig(t, set, newJob("old", set))
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "old", errors.New("no"))
	r.refuse("*", "jobs", "", refusal)
	out, err := r.carryOut(t.Context(), &plan.Observed{JobSet: set}, p)
	if out.Continue || err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("continued: %t, error %v", out.Continue, err)
	}
}

// TestMassFailureCostsOneWrite lets a thousand Jobs fail under a rule that restarts single Jobs.
func TestMassFailureCostsOneWrite(t *testing.T) {
	const many = 1000
	set := setInAttempt()
	set.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](many)
	set.Spec.FailurePolicy = &jobsetv1alpha2.FailurePolicy{
		MaxRestarts: many, Rules: []jobsetv1alpha2.FailurePolicyRule{{Name: "r", Action: jobsetv1alpha2.RestartJob}},
	}
	r := newRig(t, set)
	obs := &plan.Observed{JobSet: set, ServiceExists: true, KeepAttempts: true, Gates: gates.Gates{RestartJob: true},
		Restored: hostplan.None[plan.Restored](), Cause: hostplan.NotObtained[*jobsetv1alpha2.FailureCause]()}
	for i := range many {
		job := newJob(fmt.Sprint("js-w-", i), set)
		job.Labels[jobsetv1alpha2.ReplicatedJobNameKey], job.Labels[jobsetv1alpha2.JobIndexKey] = "w", fmt.Sprint(i)
		job.Labels[jobsetv1alpha2.RestartsKey] = "0"
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}}
		obs.Jobs = append(obs.Jobs, job)
	}
	for {
		p := plan.Decide(*obs)
		if len(p.DeleteJobs) > 0 {
			diff(t, "deletions", many, len(p.DeleteJobs))
			break
		}
		if _, err := r.carryOut(t.Context(), obs, p); err != nil {
			t.Fatal(err)
		}
		obs.JobSet = r.set(t)
	}
	diff(t, "requests to the API of JobSets", 1, len(slices.DeleteFunc(r.jobSets.Actions(), func(a clientgotesting.Action) bool { return a.GetVerb() != "update" })))
	if lists := len(r.kube.Actions()); lists > 2 {
		t.Errorf("pods were read %d times", lists)
	}
}

// TestTakenNamesDoNotFillAllPlans has other Jobs take as many names of the set as one plan creates.
func TestTakenNamesDoNotFillAllPlans(t *testing.T) {
	const taken, all = 500, 900
	set := newSet()
	set.Spec.ReplicatedJobs[0].Replicas = ptr.To[int32](all)
	r := newRig(t, set)
	foreign := sets.New[string]()
	for i := range taken {
		foreign.Insert(fmt.Sprint("js-w-", i))
	}
	r.kube.PrependReactor("create", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		job := action.(clientgotesting.CreateAction).GetObject().(*batchv1.Job)
		if foreign.Has(job.Name) {
			return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "jobs"}, job.Name)
		}
		return true, job, nil
	})
	r.kube.PrependReactor("get", "jobs", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		return true, newJob(action.(clientgotesting.GetAction).GetName(), nil), nil
	})
	key := cache.MetaObjectToName(set)
	for range 2 {
		obs := &plan.Observed{JobSet: set, ServiceExists: true, CreateFrom: r.createFrom.Noted(key)}
		if _, err := r.carryOut(t.Context(), obs, plan.Decide(*obs)); err != nil {
			t.Fatal(err)
		}
	}
	asked := sets.New(r.requests()...)
	for i := taken; i < all; i++ {
		if !asked.Has(fmt.Sprint("create jobs js-w-", i)) {
			t.Fatalf("job js-w-%d was not created", i)
		}
	}
}
