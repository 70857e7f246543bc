// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Decorate returns a getter whose resources are served although some of their objects cannot be read. The stores of the
// next getter must be wrapped with Wrap below their watch cache.
func Decorate(next generic.RESTOptionsGetter, objects *Objects) generic.RESTOptionsGetter {
	return getter{next: next, objects: objects}
}

type getter struct {
	next    generic.RESTOptionsGetter
	objects *Objects
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g getter) GetRESTOptions(of schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.next.GetRESTOptions(of, example)
	if err != nil {
		return options, err
	}
	decorator := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		r := newResource(config.GroupResource, config.Prefix, prefix, newFunc, g.objects)
		tolerating := *config
		tolerating.Transformer, tolerating.Codec = newTransformer(config.Transformer), &codec{Codec: config.Codec, of: r}
		store, destroy, err := decorator(&tolerating, prefix, keyFunc, newFunc, newListFunc, attributes, trigger, indexers)
		if err != nil {
			return store, destroy, err
		}
		show(config.GroupResource, 0)
		return served{Interface: store, of: r}, destroy, nil
	}
	return options, nil
}

// served is a store that returns no placeholder for an object, and warns of those in lists.
type served struct {
	storage.Interface
	of *resource
}

// Get implements storage.Interface. The watch cache answers with a placeholder.
func (s served) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if err := s.Interface.Get(ctx, key, opts, out); err != nil {
		return err
	}
	found, err := meta.Accessor(out)
	if err != nil || !unreadable.Is(found) {
		return nil //nolint:nilerr // what has no metadata is no placeholder
	}
	cause := found.GetAnnotations()[unreadable.Annotation]
	if err := runtime.SetZeroValue(out); err != nil {
		return err
	}
	return refused(s.of.object(s.of.absolute(key), cause))
}

// maxNamed is how many objects a warning names.
const maxNamed = 5

// GetList implements storage.Interface.
func (s served) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if err := s.Interface.GetList(ctx, key, opts, list); err != nil || s.of.objects.none() {
		return err
	}
	var names []string
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if found, err := meta.Accessor(item); err == nil && unreadable.Is(found) {
			names = append(names, strings.TrimPrefix(found.GetNamespace()+"/"+found.GetName(), "/"))
		}
		return nil
	})
	if err == nil && len(names) > 0 {
		warning.AddWarning(ctx, "", warningOf(s.of.GroupResource, names))
	}
	return err
}

func warningOf(of schema.GroupResource, names []string) string {
	shown := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%d of these %s cannot be read from the store, and are shown without their content: %s. \"jobset-apiserver store "+
		"status\" and \"kubectl jobset doctor\" say why", len(names), of, shown)
}
