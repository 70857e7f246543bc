// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// edit is the write of an action to its object. A write that changes anything but the status passes the admission of UPDATE of the
// object, as if its user had changed the object directly: a webhook or policy that guards a field guards it against actions, too.
type edit struct {
	Target
	name    string
	user    user.Info
	info    *request.RequestInfo
	space   string
	options *metav1.UpdateOptions
}

func newEdit(ctx context.Context, target Target, name string, options *metav1.CreateOptions) edit {
	update := &metav1.UpdateOptions{DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation}
	update.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	e := edit{Target: target, name: name, space: request.NamespaceValue(ctx), options: update}
	e.user, _ = request.UserFrom(ctx)
	e.info, _ = request.RequestInfoFrom(ctx)
	return e
}

// limit takes back what an action may not change.
func (e edit) limit(ctx context.Context, obj, current runtime.Object) (runtime.Object, error) {
	e.strategy.PrepareForUpdate(ctx, obj, current)
	accessor(obj).SetGeneration(accessor(current).GetGeneration()) // it is counted when the object is stored
	return obj, nil
}

// mutate lets mutating admission change an object that the action edits. What it changes is stored as in an UPDATE, except for the
// status and for who owns which field.
func (e edit) mutate(ctx context.Context, obj, current runtime.Object) (runtime.Object, error) {
	chain, ok := admission.WithAudit(e.host.Admission).(admission.MutationInterface)
	if !ok || !chain.Handles(admission.Update) || !differ(obj, current) {
		return obj, nil
	}
	wanted := obj.DeepCopyObject()
	attributes, err := e.attributes(obj, current)
	if err != nil {
		return nil, err
	}
	if err := chain.Admit(ctx, attributes, e.host.Objects); err != nil {
		return nil, err
	}
	keep(obj, wanted)
	if field := reversed(obj, wanted, current); field != "" {
		return nil, admission.NewForbidden(attributes, fmt.Errorf(
			"the action must change %s, but a mutating webhook or policy for UPDATE of %s changed it back", field,
			attributes.GetResource().Resource))
	}
	return obj, nil
}

// validate calls validating admission for an object that the action edits, in the form in which it will be stored.
func (e edit) validate(ctx context.Context, obj, old runtime.Object) error {
	if e.host.Admission == nil || !differ(obj, old) {
		return nil
	}
	attributes, err := e.attributes(nil, nil)
	if err != nil {
		return err
	}
	return rest.AdmissionToValidateObjectUpdateFunc(admission.WithAudit(e.host.Admission), attributes, e.host.Objects)(ctx, obj, old)
}

// attributes are the attributes of an UPDATE of the object by the user of the action, in the version that the user asked for.
func (e edit) attributes(obj, old runtime.Object) (admission.Attributes, error) {
	if e.info == nil {
		return nil, fmt.Errorf("no information about the request to act on %s %s", e.Kind, e.name)
	}
	resource := e.store.DefaultQualifiedResource.WithVersion(e.info.APIVersion)
	return admission.NewAttributesRecord(obj, old, resource.GroupVersion().WithKind(e.Kind), e.space, e.name, resource, "",
		admission.Update, e.options, dryrun.IsDryRun(e.options.DryRun), e.user), nil
}
