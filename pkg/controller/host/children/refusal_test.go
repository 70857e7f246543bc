// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func TestReachOfRefusals(t *testing.T) {
	job, jobsResource := schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupResource{Group: "batch", Resource: "jobs"}
	forbidden := func(why string) error { return apierrors.NewForbidden(jobsResource, "j", errors.New(why)) }
	terminating := apierrors.NewForbidden(jobsResource, "j", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	spec := field.NewPath("spec")
	answer := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	policy := apierrors.NewForbidden(jobsResource, "j", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"))
	policy.ErrStatus.Code, policy.ErrStatus.Reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "no"}}
	webhook := apierrors.NewInvalid(job, "j", field.ErrorList{field.Required(spec.Child("x"), "")})
	webhook.ErrStatus.Message = `admission webhook "w" denied the request: ` + webhook.ErrStatus.Message
	for name, tc := range map[string]struct {
		err  error
		want reach
	}{
		"no answer":                           {errors.New("connection refused"), allChildren},
		"too slow an answer":                  {fmt.Errorf("post: %w", context.DeadlineExceeded), allChildren},
		"too many requests":                   {apierrors.NewTooManyRequests("later", 1), allChildren},
		"a failed server":                     {apierrors.NewInternalError(errors.New(`failed calling webhook "w"`)), allChildren},
		"a server that is not ready":          {apierrors.NewServiceUnavailable("starting"), allChildren},
		"a timeout of the server":             {apierrors.NewTimeoutError("etcd", 1), allChildren},
		"no identity":                         {apierrors.NewUnauthorized("token"), allChildren},
		"no right":                            {apierrors.NewForbidden(jobsResource, "", errors.New(`User "u" cannot create resource "jobs" in API group "batch" in the namespace "ns"`)), allChildren},
		"no right to delete":                  {apierrors.NewForbidden(jobsResource, "j", errors.New(`User "u" cannot delete resource "jobs" in API group "batch" in the namespace "ns"`)), allChildren},
		"no right to patch":                   {apierrors.NewForbidden(jobsResource, "j", errors.New(`User "u" cannot patch resource "jobs" in API group "batch" in the namespace "ns"`)), allChildren},
		"no right to update":                  {apierrors.NewForbidden(jobsResource, "j", errors.New(`User "u" cannot update resource "jobs/status" in API group "batch" in the namespace "ns"`)), allChildren},
		"a quota":                             {forbidden("exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1"), allChildren},
		"no namespace":                        {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"), allChildren},
		"a namespace that is being deleted":   {terminating, allChildren},
		"an invalid template":                 {apierrors.NewInvalid(job, "j", field.ErrorList{field.Required(spec.Child("template", "spec", "containers").Index(0).Child("image"), "")}), sameTemplate},
		"a template that is not all":          {apierrors.NewInvalid(job, "j", field.ErrorList{field.Required(spec.Child("x"), ""), field.Invalid(field.NewPath("metadata", "name"), "j", "")}), thisChild},
		"a name too long for labels of pods":  {apierrors.NewInvalid(job, "j", field.ErrorList{field.Invalid(spec.Child("template", "labels"), "j", "too long")}), thisChild},
		"a policy":                            {forbidden("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not this one"), thisChild},
		"a policy with the code of invalid":   {policy, thisChild},
		"a webhook":                           {answer(http.StatusForbidden, `admission webhook "w" denied the request: cannot create resource with this name`), thisChild},
		"a webhook with the code of invalid":  {webhook, thisChild},
		"a webhook that asks what is missing": {answer(http.StatusNotFound, `admission webhook "w" denied the request: not found`), thisChild},
		"a webhook with the code of a server": {answer(http.StatusInternalServerError, `admission webhook "w" denied the request: oops`), thisChild},
		"a conflict":                          {apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("changed")), thisChild},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reachOf(job, "j", fmt.Errorf("job %q creation failed with error: %w", "j", tc.err)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestReasonsOfRefusals(t *testing.T) {
	job, jobsResource := schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupResource{Group: "batch", Resource: "jobs"}
	forbidden := func(why string) error { return apierrors.NewForbidden(jobsResource, "j", errors.New(why)) }
	answer := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a quota":                            {forbidden("exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1"), reasons.QuotaExceeded},
		"a quota that is not counted yet":    {forbidden("status unknown for quota: q, resources: count/jobs.batch"), reasons.FailedCreate},
		"no right":                           {forbidden(`User "u" cannot create resource "jobs" in API group "batch" in the namespace "ns"`), reasons.Forbidden},
		"no right to block the deletion":     {forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), reasons.Forbidden},
		"a policy":                           {forbidden("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"), reasons.AdmissionDenied},
		"a policy with the code of invalid":  {answer(http.StatusUnprocessableEntity, `jobs.batch "j" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), reasons.AdmissionDenied},
		"a webhook":                          {answer(http.StatusForbidden, `admission webhook "w" denied the request: cannot create resource with this name`), reasons.AdmissionDenied},
		"a webhook that speaks of quota":     {answer(http.StatusForbidden, `admission webhook "w" denied the request: exceeded quota: mine`), reasons.AdmissionDenied},
		"a webhook with another code":        {answer(http.StatusBadRequest, `admission webhook "w" denied the request without explanation`), reasons.AdmissionDenied},
		"a webhook that does not answer":     {apierrors.NewInternalError(errors.New(`failed calling webhook "w": connection refused`)), reasons.FailedCreate},
		"a limit range":                      {forbidden("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"), reasons.AdmissionDenied},
		"an invalid object":                  {apierrors.NewInvalid(job, "j", field.ErrorList{field.Required(field.NewPath("spec"), "")}), reasons.Invalid},
		"an object that cannot be read":      {apierrors.NewBadRequest("unknown field"), reasons.Invalid},
		"an object that is too large":        {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), reasons.Invalid},
		"no answer":                          {errors.New("connection refused"), reasons.FailedCreate},
		"a failed server":                    {apierrors.NewInternalError(errors.New("etcd")), reasons.FailedCreate},
		"too many requests":                  {apierrors.NewTooManyRequests("later", 1), reasons.FailedCreate},
		"no namespace":                       {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"), reasons.FailedCreate},
		"a conflict with another quota user": {apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("changed")), reasons.FailedCreate},
	} {
		t.Run(name, func(t *testing.T) {
			got := RefusalOf(fmt.Errorf("creating: %w", tc.err))
			if want := (plan.Refusal{Reason: tc.want, Message: "creating: " + tc.err.Error()}); tc.want != reasons.FailedCreate && got != want || got.Reason != tc.want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	if got := RefusalOf(errors.New(strings.Repeat("x", 5000))); len(got.Message) != maxRefusal {
		t.Errorf("a message of %d bytes, want %d", len(got.Message), maxRefusal)
	}
}
