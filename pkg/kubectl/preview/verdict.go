// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ask asks one question and makes a verdict of the answer, with the fields of the user's object. An error that comes from no server
// ends the preview.
func ask(ctx context.Context, where locator, question func(context.Context) error) (Verdict, error) {
	ctx, collected := withWarnings(ctx)
	err := question(ctx)
	v := Verdict{Answer: Accepted}
	for _, text := range collected.list {
		v.Warnings = append(v.Warnings, where.locatedWarning(text))
	}
	if err == nil {
		return v, nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || ctx.Err() != nil {
		return Verdict{}, err
	}
	if notAsked(err) {
		v.Answer, v.Problems = Unknown, []string{status.Status().Message}
		return v, nil
	}
	v.Answer, v.Problems = Refused, problems(status.Status(), where)
	return v, nil
}

// askOwned asks about an object whose owner may not exist yet. A webhook that looks for the owner, such as the webhook of Kueue, refuses
// the object for this reason alone. It would find the owner when the controller creates the object, so it is asked about the object without
// an owner.
func askOwned(ctx context.Context, where locator, object metav1.Object, question func(context.Context) error) (Verdict, error) {
	v, err := ask(ctx, where, question)
	if err != nil || !v.lacksOwner(object) {
		return v, err
	}
	owners := object.GetOwnerReferences()
	object.SetOwnerReferences(nil)
	defer object.SetOwnerReferences(owners)
	return ask(ctx, where, question)
}

// lacksOwner reports whether a webhook refuses the object because it does not find the owner.
func (v Verdict) lacksOwner(object metav1.Object) bool {
	for _, owner := range object.GetOwnerReferences() {
		if v.Answer == Refused && slices.ContainsFunc(v.Problems, func(text string) bool {
			return strings.Contains(text, "admission webhook") && strings.Contains(text, owner.Kind) && strings.Contains(text, "not found")
		}) {
			return true
		}
	}
	return false
}

// notAsked reports whether the error is about the dry run, and not about the object: the user may not create such objects
// while the controller may, or a webhook cannot be asked without consequences.
func notAsked(err error) bool {
	text := err.Error()
	return apierrors.IsForbidden(err) && strings.Contains(text, " cannot create resource ") ||
		apierrors.IsBadRequest(err) && strings.Contains(text, "does not support dry run")
}

// problems returns the causes of a refusal, one for each field if the server names fields. A cause that is repeated is one.
func problems(status metav1.Status, where locator) []string {
	var out []string
	if status.Reason == metav1.StatusReasonInvalid && status.Details != nil {
		for _, cause := range status.Details.Causes {
			text := strings.TrimPrefix(where(cause.Field)+": "+cause.Message, ": ") // a policy that denies names no field
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	if len(out) == 0 {
		out = []string{where.locatedMessage(status.Message)}
	}
	return out
}
