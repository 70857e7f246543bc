// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/bounds"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// Kinds knows all kinds of the server as its storage does.
type Kinds struct {
	// strict decodes JSON and reports fields that no type has; codec decodes and encodes the stored form.
	strict runtime.Decoder
	codec  runtime.Codec
	// text encodes as JSON.
	text   runtime.Encoder
	scheme *runtime.Scheme
	kinds  map[schema.GroupKind]*kind
}

// kind is one of them.
type kind struct {
	resource schema.GroupResource
	// versions are served, the preferred one first.
	versions []string
	create   rest.RESTCreateStrategy
	update   rest.RESTUpdateStrategy
}

// NewKinds returns the kinds of all groups, with the feature gates of the server as its flag has them.
func NewKinds(featureGates string) (*Kinds, error) {
	gates, err := features.NewGate()
	if err != nil {
		return nil, err
	}
	if err := gates.Set(featureGates); err != nil {
		return nil, fmt.Errorf("--feature-gates: %w: give those of the server", err)
	}
	return KindsFor(gates)
}

// KindsFor returns the kinds of all groups whose objects are in etcd, with these feature gates.
func KindsFor(gates featuregate.FeatureGate) (*Kinds, error) {
	scheme, codecs := apiserver.NewScheme()
	text, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	binary, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok || text.StrictSerializer == nil {
		return nil, fmt.Errorf("no serializers for %s and %s", runtime.ContentTypeJSON, runtime.ContentTypeProtobuf)
	}
	all := apigroups.All().InEtcd()
	k := &Kinds{
		strict: codecs.DecoderToVersion(text.StrictSerializer, runtime.InternalGroupVersioner),
		codec:  codecs.CodecForVersions(binary.Serializer, codecs.UniversalDeserializer(), all.StorageVersions(), runtime.InternalGroupVersioner),
		text:   codecs.EncoderForVersion(text.Serializer, all.StorageVersions()),
		scheme: scheme,
		kinds:  map[schema.GroupKind]*kind{},
	}
	host := provider.Host{Getter: offline{k.codec}, Scheme: scheme, Gates: gates, Now: time.Now}
	for _, group := range all {
		if err := k.add(group.Provider, host); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// add adds the kinds of a group.
func (k *Kinds) add(group provider.Provider, host provider.Host) error {
	served, err := group.Storage(host)
	if err != nil {
		return err
	}
	for _, name := range group.Resources {
		store, ok := served[group.StorageVersion.Version][name].(*bounds.Store)
		if !ok {
			return fmt.Errorf("the storage of %s has no strategies", name)
		}
		gvks, _, err := k.scheme.ObjectKinds(store.New())
		if err != nil {
			return err
		}
		added := &kind{resource: schema.GroupResource{Group: group.Group(), Resource: name}, create: store.CreateStrategy,
			update: store.UpdateStrategy}
		for _, version := range group.Versions {
			added.versions = append(added.versions, version.Version)
		}
		k.kinds[gvks[0].GroupKind()] = added
	}
	return nil
}

// Resources are the resources whose objects can be imported, sorted.
func (k *Kinds) Resources() []schema.GroupResource {
	var resources []schema.GroupResource
	for _, kind := range k.sorted() {
		resources = append(resources, kind.resource)
	}
	return resources
}

func (k *Kinds) sorted() []*kind {
	return slices.SortedFunc(maps.Values(k.kinds), func(a, b *kind) int { return compare(a.resource.String(), b.resource.String()) })
}

// offline gives stores no storage: only their strategies are used.
type offline struct{ codec runtime.Codec }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o offline) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: storagebackend.NewDefaultConfig("", o.codec).ForResource(resource), ResourcePrefix: resource.Group + "/" +
			resource.Resource,
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
			func() runtime.Object,
			storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			return nil, func() {}, nil
		},
	}, nil
}
