// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// prepare returns an object as it is to be written into its CustomResourceDefinition, with owners that have the UIDs which they have
// there. Otherwise the garbage collector would delete it with all of its children as soon as kube-apiserver serves it. It also returns
// where to note that it was written: nowhere, if the new UID of an owner is not known yet. Then the object is written again.
func (g *giver) prepare(ctx context.Context, object *custom) (*custom, *written, error) {
	wanted, written := object.DeepCopy(), g.written
	wanted.SetAPIVersion(g.subject.returning().GroupVersion().String())
	wanted.SetResourceVersion("")
	owners := wanted.GetOwnerReferences()
	for i := range owners {
		err := g.renew(ctx, object.GetNamespace(), &owners[i])
		switch {
		case apierrors.IsNotFound(err), errors.Is(err, errReplaced):
			// It is not written yet, or it is gone. Then the garbage collector is right to delete what it owned.
			written = nil
		case err != nil:
			return nil, nil, fmt.Errorf("reading the owner %s %s of %s %s in its CustomResourceDefinition: %w",
				owners[i].Kind, owners[i].Name, g.subject.resource.Resource, nameOf(object), err)
		}
	}
	if len(owners) > 0 {
		wanted.SetOwnerReferences(owners)
	}
	return wanted, written, nil
}

// errReplaced is the error of an owner whose name another object has.
var errReplaced = errors.New("was replaced by another one meanwhile")

// renew sets the UID that an owner has in its CustomResourceDefinition.
func (m *mover) renew(ctx context.Context, namespace string, owner *metav1.OwnerReference) error {
	at := slices.IndexFunc(m.subjects, func(s subject) bool {
		return s.kind == owner.Kind && s.resource.GroupVersion().String() == owner.APIVersion
	})
	if at < 0 {
		return nil // another kind, which keeps its UID
	}
	object, err := m.dynamic.Resource(m.subjects[at].returning()).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if former := object.GetAnnotations()[formerUID]; object.GetUID() != owner.UID && former != string(owner.UID) {
		return fmt.Errorf("%s %s %w", owner.Kind, owner.Name, errReplaced)
	}
	owner.UID = object.GetUID()
	return nil
}
