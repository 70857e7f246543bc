// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
)

// Route returns whether kube-apiserver forwards an API group and version to another server. The error is NotFound if no APIService
// says so. A group that kube-apiserver serves itself, from a CustomResourceDefinition, belongs to another controller.
type Route func(ctx context.Context, gv schema.GroupVersion) (forwarded bool, err error)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// RoutesOf reads the routes from the APIServices of a cluster.
func RoutesOf(client dynamic.Interface) Route {
	return func(ctx context.Context, gv schema.GroupVersion) (bool, error) {
		service, err := client.Resource(apiServices).Get(ctx, gv.Version+"."+gv.Group, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		target, found, _ := unstructured.NestedMap(service.Object, "spec", "service")
		return found && target != nil, nil
	}
}

// elsewhere is the error about a group that kube-apiserver serves itself. It is NotFound: for our controllers the group is absent.
func elsewhere(gv schema.GroupVersion) error {
	err := apierrors.NewNotFound(schema.GroupResource{Group: gv.Group, Resource: gv.Version}, "")
	err.ErrStatus.Message = fmt.Sprintf("kube-apiserver serves %s from a CustomResourceDefinition, which belongs to another controller", gv)
	return err
}

// Own asks for an API group of jobset-apiserver. The error is NotFound if it is not served, or not by jobset-apiserver.
func (f *Factory) Own(ctx context.Context, gv schema.GroupVersion) error {
	if err := f.Served(ctx, gv); err != nil {
		return err
	}
	return f.routed(ctx, gv)
}

// routed returns an error if kube-apiserver serves a group itself. What is not known is no reason to leave objects alone that
// the controller has run before.
func (f *Factory) routed(ctx context.Context, gv schema.GroupVersion) error {
	if f.route == nil {
		return nil
	}
	forwarded, err := f.route(ctx, gv)
	switch {
	case err != nil:
		klog.FromContext(ctx).V(2).Info("Not known which server answers for an API group", "version", gv, "reason", err.Error())
		return nil
	case !forwarded:
		return elsewhere(gv)
	}
	return nil
}

// Lost returns a channel with the first error about a group that kube-apiserver serves itself, after it was served by jobset-apiserver.
func (f *Factory) Lost() <-chan error { return f.lost }

// Claim notes that a controller runs the objects of a group from now on.
func (f *Factory) Claim(gv schema.GroupVersion) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claimed.Insert(gv)
}

func (f *Factory) claims(gv schema.GroupVersion) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.claimed.Has(gv)
}

// admit returns what a server of a group asks before each list and watch. A group that this program runs is not followed any more once it
// was given to another controller.
func (f *Factory) admit(gv schema.GroupVersion) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		if !f.claims(gv) {
			return nil
		}
		err := f.routed(ctx, gv)
		if err != nil {
			select {
			case f.lost <- err:
			default:
			}
		}
		return err
	}
}
