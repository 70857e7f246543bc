// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

var jobsResource = schema.GroupResource{Group: "batch", Resource: "jobs"}

func denied(name string) error {
	return apierrors.NewForbidden(jobsResource, name, errors.New(`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not this one`))
}

func invalidTemplate(name string) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, name,
		field.ErrorList{field.Required(field.NewPath("spec", "template", "spec", "containers").Index(0).Child("image"), "")})
}

func overQuota(name string) error {
	return apierrors.NewForbidden(jobsResource, name, errors.New("exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1"))
}

// sizedSet returns a set without a Service, and so many Jobs in the replicatedJobs a, b and so on.
func sizedSet(replicas ...int32) *jobsetv1alpha2.JobSet {
	js := newSet()
	js.Spec.Network, js.Spec.ReplicatedJobs = nil, nil
	for i, n := range replicas {
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, jobsetv1alpha2.ReplicatedJob{Name: string(rune('a' + i)), Replicas: ptr.To(n)})
	}
	return js
}

// numbered returns the names of Jobs of one replicatedJob.
func numbered(replicatedJob string, from, to int) (names []string) {
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprintf("js-%s-%d", replicatedJob, i))
	}
	return names
}

func TestDeniedJobsDelayNoOther(t *testing.T) {
	bad := sets.New(numbered("a", 0, 9)...)
	r := newPasses(t, sizedSet(400), func(name string) error {
		if bad.Has(name) {
			return denied(name)
		}
		return nil
	})
	diff(t, "Jobs that the first pass asks for", numbered("a", 0, 399), r.pass(t))
	diff(t, "Jobs that exist", 390, r.exist())
	want := "10 jobs could not be created: "
	for _, name := range numbered("a", 0, 2) {
		want += fmt.Sprintf("job %q creation failed with error: %v\n", name, denied(name))
	}
	want += "and 7 more"
	diff(t, "error", want, errorText(r.last))
	diff(t, "events", []string{want}, r.notes())
	diff(t, "Jobs that a pass asks for at once", []string(nil), r.pass(t))
	diff(t, "error of a pass that asks for none", want, errorText(r.last))
	diff(t, "Jobs that a later pass asks for", numbered("a", 0, 9), r.later(t))
	bad.Delete("js-a-4")
	r.later(t)
	diff(t, "Jobs that exist when one more is allowed", 391, r.exist())
}

func TestRejectedTemplateCostsOneRequestPerPass(t *testing.T) {
	r := newPasses(t, sizedSet(400, 5), func(name string) error {
		if strings.HasPrefix(name, "js-a-") {
			return invalidTemplate(name)
		}
		return nil
	})
	diff(t, "Jobs that the first pass asks for", append([]string{"js-a-0"}, numbered("b", 0, 4)...), r.pass(t))
	diff(t, "Jobs that a pass asks for at once", []string(nil), r.pass(t))
	diff(t, "Jobs that the next pass asks for", []string{"js-a-0"}, r.passAfter(t, 10*time.Second))
	diff(t, "Jobs that exist", 5, r.exist())
	text := fmt.Sprintf("400 jobs could not be created: job \"js-a-0\" creation failed with error: %v", invalidTemplate("js-a-0"))
	diff(t, "events", []string{text, text, text}, r.notes())
}

func TestSharedRejectionEndsThePass(t *testing.T) {
	for name, refusal := range map[string]func(string) error{
		"quota":           overQuota,
		"no answer":       func(string) error { return errRefused },
		"a failed server": func(string) error { return apierrors.NewInternalError(errRefused) },
	} {
		t.Run(name, func(t *testing.T) {
			limit := 3
			r := newPasses(t, sizedSet(5, 3), nil)
			r.refused = func(name string) error {
				if r.exist() >= limit {
					return refusal(name)
				}
				return nil
			}
			diff(t, "Jobs that the first pass asks for", numbered("a", 0, 3), r.pass(t))
			diff(t, "Jobs that the second pass asks for", []string{"js-a-4"}, r.later(t))
			diff(t, "Jobs that the third pass asks for", []string{"js-b-0"}, r.later(t))
			limit = 100
			diff(t, "Jobs that are asked for once that is over", []string{"js-b-1", "js-b-2", "js-a-3", "js-a-4", "js-b-0"}, r.later(t))
			diff(t, "error", "", errorText(r.last))
			diff(t, "whether the order is forgotten", int64(0), r.createFrom.Noted(cache.MetaObjectToName(r.set)))
		})
	}
}

// The condition is about a quota that others use too: each pass may be refused in other words.
func TestRefusedJobsAreACondition(t *testing.T) {
	limit := 3
	r := newPasses(t, sizedSet(5, 3), nil)
	r.refused = func(name string) error {
		if r.exist() >= limit {
			return overQuota(name)
		}
		return nil
	}
	first := fmt.Sprintf("True QuotaExceeded 5 of 8 Jobs could not be created: %v", overQuota("js-a-3"))
	for pass := range 5 {
		r.pass(t)
		r.show(t)
		diff(t, fmt.Sprintf("condition after pass %d", pass), first, r.condition(t))
	}
	diff(t, "writes of the status", 1, r.statusWrites())
	limit = 8
	r.later(t)
	r.pass(t)
	r.show(t)
	diff(t, "condition when all are created", "False JobsCreated the missing Jobs have been created", r.condition(t))
}

func TestRefusedServiceIsACondition(t *testing.T) {
	r := newRig(t, newSet())
	r.refuse("create", "services", "", denied("js"))
	obs, err := plan.Observed{JobSet: newSet(), Now: metav1.Now()}, error(nil)
	if _, err = r.carryOut(t.Context(), &obs, plan.Decide(obs)); err == nil {
		t.Error("no error of the refused Service")
	}
	diff(t, "condition", fmt.Sprintf("True AdmissionDenied the Service js could not be created: %v", denied("js")), r.condition(t))
}

// An API server that does not answer for a moment refuses the Jobs of all sets.
func TestPassingRefusalsAreNoConditionAtFirst(t *testing.T) {
	r := newPasses(t, sizedSet(5), func(string) error { return errRefused })
	r.pass(t)
	diff(t, "condition", "", r.condition(t))
	r.refusedSince.Note(cache.MetaObjectToName(r.set), time.Now().Add(-time.Minute))
	r.pass(t)
	diff(t, "condition after a minute", "True FailedCreate 5 of 5 Jobs could not be created: "+errRefused.Error(), r.condition(t))
}

// condition returns the stored condition JobCreationFailure.
func (r *rig) condition(t *testing.T) string {
	t.Helper()
	stored, err := r.jobSets.JobsetV1alpha2().JobSets("ns").Get(t.Context(), "js", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(stored.Status.Conditions, jobsetv1alpha2.JobCreationFailure)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

// show shows the stored set to the cache.
func (r *passes) show(t *testing.T) {
	t.Helper()
	stored, err := r.jobSets.JobsetV1alpha2().JobSets(r.set.Namespace).Get(t.Context(), r.set.Name, metav1.GetOptions{})
	if err == nil {
		err = r.caches.jobSets.GetIndexer().Update(stored)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDenyingPolicyGetsFewRequests(t *testing.T) {
	r := newPasses(t, sizedSet(1000), denied)
	diff(t, "Jobs that the first pass asks for", numbered("a", 0, 99), r.pass(t))
	diff(t, "Jobs that the second pass asks for", numbered("a", 100, 199), r.pass(t))
	if lines := strings.Count(errorText(r.last), "\n"); lines > 3 {
		t.Errorf("the error has %d lines: %v", lines, r.last)
	}
}

func TestPanicInCreationIsAnErrorOfThatJob(t *testing.T) {
	r := newPasses(t, sizedSet(5), func(name string) error {
		if name == "js-a-1" {
			panic("no such thing")
		}
		return nil
	})
	r.pass(t)
	diff(t, "Jobs that exist", 4, r.exist())
	diff(t, "error", "panic: no such thing", errorText(r.last))
}

// A set that is about to be looked at again is, whatever became of the names of its Jobs.
func TestEarliestRequeueTimeWins(t *testing.T) {
	r := newRig(t, newSet())
	r.refuse("create", "jobs", "js-w-0", apierrors.NewAlreadyExists(jobsResource, "js-w-0")) // and then it is gone
	obs := plan.Observed{JobSet: newSet()}
	for planned, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Millisecond: time.Millisecond, time.Hour: time.Second,
	} {
		p := plan.Plan{CreateJobs: []*batchv1.Job{newJob("js-w-0", newSet())}, RequeueAfter: planned}
		got, err := r.carryOut(t.Context(), &obs, p)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, fmt.Sprintf("time to look again when %v was planned", planned), want, got.RequeueAfter)
	}
}
