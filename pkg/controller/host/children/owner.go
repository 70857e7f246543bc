// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// StatusTimeout is how long a status write may take. It begins when the children are done, however long that took.
const StatusTimeout = 10 * time.Second

// OwnerClient is what is needed of a client of the owners of children in one namespace.
type OwnerClient[T metav1.Object] interface {
	UpdateStatus(ctx context.Context, owner T, options metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// OwnersIn returns the clients of owners for any namespace.
func OwnersIn[T metav1.Object, C OwnerClient[T]](of func(namespace string) C) func(namespace string) OwnerClient[T] {
	return func(namespace string) OwnerClient[T] { return of(namespace) }
}

// StoreStatus stores the next status of an owner, which was another one before, even if the context has ended, and notes the write as one
// of the resource. A status that was denied is not sent before its time, whatever it says: see Denials. Nor is one that another party
// changes back each time: see StatusGuard. StoreStatus returns what is stored; found is false if the owner is gone. The noun names the kind
// in errors.
func StoreStatus[T metav1.Object](ctx context.Context, host *Host, client OwnerClient[T], resource, noun string,
	before, next T) (stored T, found bool, err error) {
	guard := StatusGuardOf(host)
	if err := guard.Storing(noun, before, next); err != nil {
		return next, true, err
	}
	what := Request{Verb: verbStatus, Resource: resource, Name: next.GetName(), UID: next.GetUID()}
	err = DenialsOf(host).Do(next, what, func() error {
		stored, err = UpdateStatus(ctx, client, next)
		return err
	})
	key := cache.MetaObjectToName(next)
	switch {
	case apierrors.IsNotFound(err):
		return stored, false, nil
	case err != nil:
		return stored, true, fmt.Errorf("updating status of %s %s: %w", noun, key, err)
	}
	host.Consistency.Wrote(key, resource, stored.GetResourceVersion())
	guard.Stored(before, next, stored)
	return stored, true, nil
}

// UpdateStatus stores a status, even if the context has ended.
func UpdateStatus[T metav1.Object](ctx context.Context, client OwnerClient[T], next T) (T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StatusTimeout)
	defer cancel()
	return client.UpdateStatus(ctx, next, metav1.UpdateOptions{})
}

// DeleteOwner deletes an owner of a resource with its children in the foreground, unless it was changed meanwhile, or the deletion was
// denied and its time has not come. One that is gone is no error.
func DeleteOwner[T metav1.Object](ctx context.Context, host *Host, client OwnerClient[T], resource string, owner T) error {
	ctx, end := Finishing(ctx)
	defer end()
	what := Request{Verb: verbDelete, Resource: resource, Name: owner.GetName(), UID: owner.GetUID()}
	err := DenialsOf(host).Do(owner, what, func() error {
		options := Foreground(owner.GetUID(), owner.GetResourceVersion())
		err := client.Delete(ctx, owner.GetName(), options)
		if refusedForSpace(err) {
			// A deletion in the foreground writes first, which a full store refuses. One in the background makes space.
			options.PropagationPolicy = ptr.To(metav1.DeletePropagationBackground)
			err = client.Delete(ctx, owner.GetName(), options)
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// refusedForSpace returns whether the store of the owners has no space for a write.
func refusedForSpace(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInsufficientStorage
}
