// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

const (
	typeFailure = jobsetv1alpha2.JobCreationFailure
	overQuota   = `jobs.batch "js-w-1" is forbidden: exceeded quota: q`
	ofQuota     = "2 of 3 Jobs could not be created: " + overQuota
)

var (
	quotaRefusal   = Refusal{Reason: "QuotaExceeded", Message: overQuota}
	deniedRefusal  = Refusal{Reason: "AdmissionDenied", Message: "no"}
	passingRefusal = Refusal{Reason: "FailedCreate", Message: "etcd", MayPass: true}
)

func TestRefusedChildren(t *testing.T) {
	failure := func(reason, message string, at metav1.Time) *metav1.Condition {
		return &metav1.Condition{Type: typeFailure, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: at}
	}
	stored := func(reason, message string) []func(*jobsetv1alpha2.JobSet) {
		return []func(*jobsetv1alpha2.JobSet){withCondition(typeFailure, metav1.ConditionTrue, reason, message)}
	}
	refused := func(why ...Refusal) Results {
		return Results{Creations: []Creation{Created, Refused, NotTried}, CreationError: "x", Refusals: why}
	}
	allTried := func(why ...Refusal) Results {
		return Results{Creations: []Creation{Created, Refused, Refused}, CreationError: "x", Refusals: why}
	}
	for name, tc := range map[string]struct {
		set     []func(*jobsetv1alpha2.JobSet)
		results Results
		since   time.Duration
		want    *metav1.Condition
	}{
		"nothing is refused":                     {results: Results{Creations: []Creation{Created, Created, Created}}},
		"a quota":                                {results: refused(quotaRefusal), want: failure("QuotaExceeded", ofQuota, now)},
		"the first of several reasons":           {results: allTried(deniedRefusal, quotaRefusal), want: failure("AdmissionDenied", "2 of 3 Jobs could not be created: no", now)},
		"names that are taken do not count":      {results: Results{Creations: []Creation{NameTaken, NameFreed, Refused}, Refusals: []Refusal{deniedRefusal}}, want: failure("AdmissionDenied", "1 of 3 Jobs could not be created: no", now)},
		"Jobs that exist do not count":           {results: Results{Creations: []Creation{Exists, LabelsRestored, Refused}, Refusals: []Refusal{deniedRefusal}}, want: failure("AdmissionDenied", "1 of 3 Jobs could not be created: no", now)},
		"what may pass is not reported at first": {results: refused(passingRefusal)},
		"what may pass is reported after 15 seconds": {
			results: refused(passingRefusal), since: 15 * time.Second, want: failure("FailedCreate", "2 of 3 Jobs could not be created: etcd", now),
		},
		"what cannot pass is reported first": {results: allTried(passingRefusal, quotaRefusal), want: failure("QuotaExceeded", ofQuota, now)},
		"the message stays while number and reason do": {
			set: stored("QuotaExceeded", "2 of 3 Jobs could not be created: earlier words"), results: refused(quotaRefusal),
			want: failure("QuotaExceeded", "2 of 3 Jobs could not be created: earlier words", before),
		},
		"another number is reported with the same time": {
			set: stored("QuotaExceeded", "3 of 3 Jobs could not be created: earlier words"), results: refused(quotaRefusal), want: failure("QuotaExceeded", ofQuota, before),
		},
		"a reason stays that was seen among others": {
			set: stored("QuotaExceeded", ofQuota), results: allTried(deniedRefusal, quotaRefusal), want: failure("QuotaExceeded", ofQuota, before),
		},
		"a reason stays while not all are tried": {
			set: stored("QuotaExceeded", ofQuota), results: refused(deniedRefusal), want: failure("QuotaExceeded", ofQuota, before),
		},
		"a reason that is gone is replaced when all were tried": {
			set: stored("QuotaExceeded", ofQuota), results: allTried(deniedRefusal), want: failure("AdmissionDenied", "2 of 3 Jobs could not be created: no", before),
		},
		"what may pass replaces nothing": {
			set: stored("QuotaExceeded", ofQuota), results: allTried(passingRefusal), since: time.Hour, want: failure("QuotaExceeded", ofQuota, before),
		},
		"the Service": {
			results: Results{Refusals: []Refusal{quotaRefusal}, Refused: "the Service js"},
			want:    failure("QuotaExceeded", "the Service js could not be created: "+overQuota, now),
		},
		"an end of the pass proves nothing": {
			set: stored("QuotaExceeded", ofQuota), results: Results{Creations: []Creation{Created, NotTried, NotTried}, Interrupted: true}, want: failure("QuotaExceeded", ofQuota, before),
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 3))...))
			if tc.since > 0 {
				o.RefusedSince = now.Add(-tc.since)
			}
			out := Finish(o, Decide(o), tc.results)
			diff(t, "condition", tc.want, meta.FindStatusCondition(statusAfter(o, Plan{Status: out.Status}).Conditions, typeFailure))
			for _, event := range out.Events {
				if tc.want != nil && event.Reason == tc.want.Reason {
					t.Errorf("event %v, want none: there is one about the Jobs", event)
				}
			}
		})
	}
}

func TestEndOfCreationFailure(t *testing.T) {
	failing := withCondition(typeFailure, metav1.ConditionTrue, "QuotaExceeded", ofQuota)
	const all = "the missing Jobs have been created"
	for name, tc := range map[string]struct {
		set  []func(*jobsetv1alpha2.JobSet)
		jobs []*batchv1.Job
		only func(*Observed)
		want string
	}{
		"not while a Job is missing":           {jobs: []*batchv1.Job{jobNamed("w", 0)}, want: "True QuotaExceeded " + ofQuota},
		"not while a Job is missing for now":   {jobs: []*batchv1.Job{jobNamed("w", 0)}, only: func(o *Observed) { o.MaxBacklog = 1 }, want: "True QuotaExceeded " + ofQuota},
		"not while the Service is missing":     {jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)}, only: func(o *Observed) { o.ServiceExists = false }, want: "True QuotaExceeded " + ofQuota},
		"when all are there":                   {jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)}, want: "False JobsCreated " + all},
		"with the success of the set":          {set: []func(*jobsetv1alpha2.JobSet){withAny}, jobs: []*batchv1.Job{jobNamed("w", 0, succeeded)}, want: "False JobSetCompleted jobset completed successfully"},
		"with the failure of the set":          {jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, want: "False JobSetFailed jobset failed"},
		"not with a restart":                   {set: []func(*jobsetv1alpha2.JobSet){failurePolicy(3)}, jobs: []*batchv1.Job{jobNamed("w", 0, jobFailed)}, want: "True QuotaExceeded " + ofQuota},
		"not while Jobs of a restart are gone": {set: []func(*jobsetv1alpha2.JobSet){failurePolicy(3), restarted(1, 1)}, jobs: []*batchv1.Job{jobNamed("w", 0), jobNamed("w", 1)}, want: "True QuotaExceeded " + ofQuota},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newSet(append(tc.set, with("w", 2), failing)...), tc.jobs...)
			if tc.only != nil {
				tc.only(&o)
			}
			c := meta.FindStatusCondition(statusAfter(o, Decide(o)).Conditions, typeFailure)
			diff(t, "condition", tc.want, fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
		})
	}
}

// A quota that is freed bit by bit changes the message with each pass.
func TestChangedMessagesOfCreationFailureWait(t *testing.T) {
	o := observe(newSet(with("w", 3), withCondition(typeFailure, metav1.ConditionTrue, "QuotaExceeded", "3 of 3 Jobs could not be created: q")))
	o.JobSet.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "w"}}
	out := Finish(o, Decide(o), Results{Creations: []Creation{Created, Refused, NotTried}, Refusals: []Refusal{quotaRefusal}})
	diff(t, "wait", timesAfter, out.DeferStatus)
}

func TestTimeOfRefusalsIsRemembered(t *testing.T) {
	o := observe(newSet(with("w", 1)))
	refused := Results{Creations: []Creation{Refused}, CreationError: "x", Refusals: []Refusal{passingRefusal}}
	diff(t, "first refusal", now.Time, Finish(o, Decide(o), refused).RefusedSince)
	o.RefusedSince = before.Time
	diff(t, "another refusal", before.Time, Finish(o, Decide(o), refused).RefusedSince)
	diff(t, "no refusal", time.Time{}, Finish(o, Decide(o), Results{Creations: []Creation{Created}}).RefusedSince)
}
