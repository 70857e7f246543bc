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
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/warning"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// Tolerate returns the configuration of a resource whose objects are read also if some of them cannot be decrypted or decoded. A store with
// this configuration needs Wrap below its watch cache, and Serve above it.
func (s *Objects) Tolerate(config *storagebackend.ConfigForResource, prefix string,
	newFunc func() runtime.Object) *storagebackend.ConfigForResource {
	r := newResource(config.GroupResource, config.Prefix, prefix, newFunc, s)
	tolerating := *config
	tolerating.Transformer, tolerating.Codec = newTransformer(config.Transformer), &codec{Codec: config.Codec, of: r}
	return &tolerating
}

// notTolerating is the error of a configuration that Tolerate has not returned.
func notTolerating(config *storagebackend.ConfigForResource) error {
	return fmt.Errorf("the store of %s does not tolerate objects that cannot be read", config.GroupResource)
}

// Serve returns a store that returns no placeholder for an object. It is meant to be above the watch cache. The configuration must come
// from Tolerate.
func Serve(next storage.Interface, config *storagebackend.ConfigForResource) (storage.Interface, error) {
	c, ok := config.Codec.(*codec)
	if !ok {
		return nil, notTolerating(config)
	}
	show(config.GroupResource, 0)
	return served{Interface: next, of: c.of}, nil
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
