// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// oneObject is a store that always holds the same object, whatever is written. written is what was written last
// by an update, or would be.
type oneObject struct {
	storage.Interface
	stored, written runtime.Object
}

func (*oneObject) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (*oneObject) Create(_ context.Context, _ string, obj, out runtime.Object, _ uint64) error {
	copyInto(out, obj)
	return nil
}

func (s *oneObject) Get(_ context.Context, key string, _ storage.GetOptions, out runtime.Object) error {
	if s.stored == nil || s.stored.(metav1.Object).GetName() != path.Base(key) || reflect.TypeOf(s.stored) != reflect.TypeOf(out) {
		return storage.NewKeyNotFoundError(key, 0)
	}
	copyInto(out, s.stored)
	return nil
}

func (s *oneObject) GuaranteedUpdate(_ context.Context, key string, out runtime.Object, ignoreNotFound bool, _ *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	current := reflect.New(reflect.TypeOf(out).Elem()).Interface().(runtime.Object)
	if s.stored != nil {
		copyInto(current, s.stored)
	} else if !ignoreNotFound {
		return storage.NewKeyNotFoundError(key, 0)
	}
	next, _, err := update(current, storage.ResponseMeta{ResourceVersion: 1})
	if err != nil {
		return err
	}
	s.written = next
	copyInto(out, next)
	return nil
}

func copyInto(out, obj runtime.Object) {
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
}

// inProcess is the server as it is, with its chain of decoders, defaults, strategies and encoders, and a store that holds
// one object. Only authentication and authorization are left out.
type inProcess struct {
	resource
	generic *genericserver.GenericAPIServer
	handler http.Handler
	store   *oneObject
}

// resource is where the object of a store is served.
type resource struct{ path, name string }

func (r resource) object() string { return r.path + "/" + r.name }

// newInProcess starts no server: requests are passed to its handler. The gates are switched on, unless one says otherwise: name=false.
func newInProcess(t *testing.T, served resource, gates ...string) *inProcess {
	t.Helper()
	config := newConfig(t)
	for _, gate := range gates {
		if !strings.Contains(gate, "=") {
			gate += "=true"
		}
		if err := config.Gates.(featuregate.MutableFeatureGate).Set(gate); err != nil {
			t.Fatal(err)
		}
	}
	return startInProcess(t, served, config)
}

// startInProcess is the same with other settings.
func startInProcess(t *testing.T, served resource, config *apiserver.Config) *inProcess {
	t.Helper()
	store := &oneObject{}
	config.Generic.LoopbackClientConfig = &clientrest.Config{}
	config.Generic.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, apiserver.NewDefinitionNamer())
	config.Generic.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.Generic.BuildHandlerChainFunc = func(api http.Handler, generic *genericserver.Config) http.Handler {
		withUser := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			api.ServeHTTP(w, req.WithContext(request.WithUser(req.Context(), &user.DefaultInfo{Name: "alice"})))
		})
		resolver := genericserver.NewRequestInfoResolver(generic)
		return filters.WithAuditInit(filters.WithWarningRecorder(filters.WithRequestInfo(withUser, resolver)))
	}
	backend := storagebackend.NewDefaultConfig("", config.Codecs.LegacyCodec(config.APIGroups.PrioritizedVersionsAllGroups()...))
	config.Generic.RESTOptionsGetter = generic.RESTOptions{
		ResourcePrefix: "jobsets",
		StorageConfig:  backend.ForResource(schema.GroupResource{Group: v1alpha2.SchemeGroupVersion.Group, Resource: "jobsets"}),
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return store, func() {}, nil
		},
	}
	s, err := config.Complete().New()
	if err != nil {
		t.Fatal(err)
	}
	return &inProcess{resource: served, generic: s, handler: s.Handler, store: store}
}

const (
	jobsetsPath          = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
	sequentialJobsPath   = "/apis/batch.jobset-apiserver.io/v1alpha1/namespaces/default/sequentialjobs"
	leaderWorkerSetsPath = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
)

// send sends a body as kubectl does, with strict validation of fields. It returns the answer, and the status if the
// request was refused.
func (s *inProcess) send(t *testing.T, method, path, media string, body []byte) (*httptest.ResponseRecorder, *metav1.Status) {
	t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequest(method, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", media)
	req.Header.Set("Accept", mediaJSON)
	s.handler.ServeHTTP(w, req)
	if w.Code < http.StatusBadRequest {
		return w, nil
	}
	status := &metav1.Status{}
	if err := json.Unmarshal(w.Body.Bytes(), status); err != nil {
		t.Fatalf("%d: %v: %s", w.Code, err, w.Body)
	}
	return w, status
}

// hold makes the store hold what the server answers to the creation of the object, and then to the update of its status if it
// has one.
func (s *inProcess) hold(t *testing.T, object []byte) {
	t.Helper()
	w, refusal := s.send(t, http.MethodPost, s.path, mediaJSON, object)
	if refusal != nil {
		t.Fatalf("the base is refused: %s", refusal.Message)
	}
	s.store.stored = s.decode(t, w.Body.Bytes())
	var given, created map[string]any
	if err := errors.Join(json.Unmarshal(object, &given), json.Unmarshal(s.storedJSON(t), &created)); err != nil {
		t.Fatal(err)
	}
	if given["status"] == nil {
		return
	}
	created["status"] = given["status"]
	body, err := json.Marshal(created)
	if err != nil {
		t.Fatal(err)
	}
	if w, refusal = s.send(t, http.MethodPut, s.object()+"/status", mediaJSON, body); refusal != nil {
		t.Fatalf("the status of the base is refused: %s", refusal.Message)
	}
	s.store.stored = s.decode(t, w.Body.Bytes())
}

// decode returns an answer as the store holds it.
func (s *inProcess) decode(t *testing.T, answer []byte) runtime.Object {
	t.Helper()
	_, codecs := apiserver.NewScheme()
	obj, err := runtime.Decode(codecs.UniversalDecoder(jobset.SchemeGroupVersion, batch.SchemeGroupVersion, leaderworkerset.SchemeGroupVersion,
		disaggregatedset.SchemeGroupVersion), answer)
	if err != nil {
		t.Fatal(err)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	m.SetResourceVersion("1")
	return obj
}
