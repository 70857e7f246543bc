// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestReachOfRefusals(t *testing.T) {
	job := schema.GroupKind{Group: "batch", Kind: "Job"}
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
		"no answer":                           {errors.New("connection refused"), allJobs},
		"too slow an answer":                  {fmt.Errorf("post: %w", context.DeadlineExceeded), allJobs},
		"too many requests":                   {apierrors.NewTooManyRequests("later", 1), allJobs},
		"a failed server":                     {apierrors.NewInternalError(errors.New(`failed calling webhook "w"`)), allJobs},
		"a server that is not ready":          {apierrors.NewServiceUnavailable("starting"), allJobs},
		"a timeout of the server":             {apierrors.NewTimeoutError("etcd", 1), allJobs},
		"no identity":                         {apierrors.NewUnauthorized("token"), allJobs},
		"no right":                            {apierrors.NewForbidden(jobsResource, "", errors.New(`User "u" cannot create resource "jobs" in API group "batch" in the namespace "ns"`)), allJobs},
		"a quota":                             {overQuota("j"), allJobs},
		"no namespace":                        {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"), allJobs},
		"a namespace that is being deleted":   {namespaceTerminating(), allJobs},
		"an invalid template":                 {invalidTemplate("j"), sameTemplate},
		"a template that is not all":          {apierrors.NewInvalid(job, "j", field.ErrorList{field.Required(spec.Child("x"), ""), field.Invalid(field.NewPath("metadata", "name"), "j", "")}), thisJob},
		"a name too long for labels of pods":  {apierrors.NewInvalid(job, "j", field.ErrorList{field.Invalid(spec.Child("template", "labels"), "j", "too long")}), thisJob},
		"a policy":                            {denied("j"), thisJob},
		"a policy with the code of invalid":   {policy, thisJob},
		"a webhook":                           {answer(http.StatusForbidden, `admission webhook "w" denied the request: cannot create resource with this name`), thisJob},
		"a webhook with the code of invalid":  {webhook, thisJob},
		"a webhook that asks what is missing": {answer(http.StatusNotFound, `admission webhook "w" denied the request: not found`), thisJob},
		"a webhook with the code of a server": {answer(http.StatusInternalServerError, `admission webhook "w" denied the request: oops`), thisJob},
		"a conflict":                          {apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("changed")), thisJob},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, "reach", tc.want, reachOf("j", fmt.Errorf("job %q creation failed with error: %w", "j", tc.err)))
		})
	}
}
