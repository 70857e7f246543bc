// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// serve runs the server in this process: its API and its watch cache, on an embedded etcd. Authentication, authorization and
// admission are left out. What wraps the store of JobSets, if anything does, stands between the API and everything else.
func serve(t *testing.T, wrap func(storage.Interface) storage.Interface) *rest.Config {
	t.Helper()
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	scheme, codecs := apiserver.NewScheme()
	recommended := genericserver.NewRecommendedConfig(codecs)
	config := &apiserver.Config{Generic: recommended, Scheme: scheme, Codecs: codecs, APIGroups: apigroups.All(), Gates: gate}
	recommended.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	recommended.ExternalAddress = "localhost:443"
	recommended.LoopbackClientConfig = &rest.Config{}
	recommended.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, apiserver.NewDefinitionNamer())
	recommended.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	recommended.BuildHandlerChainFunc = asAlice
	store(t, config, wrap)
	s, err := config.Complete().New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Destroy)
	listener := httptest.NewServer(s.Handler)
	t.Cleanup(listener.Close)
	return &rest.Config{Host: listener.URL}
}

// asAlice serves everybody as the same user.
func asAlice(api http.Handler, config *genericserver.Config) http.Handler {
	withUser := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		api.ServeHTTP(w, req.WithContext(request.WithUser(req.Context(), &user.DefaultInfo{Name: "alice"})))
	})
	return filters.WithAuditInit(filters.WithWarningRecorder(filters.WithRequestInfo(withUser, genericserver.NewRequestInfoResolver(config))))
}

// store starts an embedded etcd and lets the configuration store objects there as the program does.
func store(t *testing.T, config *apiserver.Config, wrap func(storage.Interface) storage.Interface) {
	t.Helper()
	dir, err := os.MkdirTemp("", "js-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	member, err := etcd.Open(etcd.Config{DataDir: dir, QuotaBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(member.Close)
	if err := member.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(config.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	versions := config.APIGroups.StorageVersions()
	shared := watchcache.NewSharing(config.Codecs.CodecForVersions(info.Serializer, config.Codecs.UniversalDeserializer(), versions, runtime.InternalGroupVersioner))
	options := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/jobset-apiserver", shared))
	options.StorageConfig.EncodeVersioner = versions
	options.StorageConfig.Transport.ServerList = []string{member.Endpoint()}
	if err := options.ApplyTo(&config.Generic.Config); err != nil {
		t.Fatal(err)
	}
	getter := watchcache.Decorate(config.Generic.RESTOptionsGetter, shared, func(schema.GroupResource) bool { return true }, nil)
	if wrap != nil {
		getter = wrapping{getter, wrap}
	}
	config.Generic.RESTOptionsGetter = getter
}

// wrapping puts something around the store of JobSets.
type wrapping struct {
	generic.RESTOptionsGetter
	wrap func(storage.Interface) storage.Interface
}

func (w wrapping) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := w.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || resource.Resource != "jobsets" {
		return options, err
	}
	next := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, indexerFuncs storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := next(config, prefix, keyFunc, newFunc, newListFunc, attributes, indexerFuncs, indexers)
		return w.wrap(store), destroy, err
	}
	return options, nil
}
