// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/poll"
)

var jobSets = schema.GroupResource{Group: jobset.GroupName, Resource: "jobsets"}

const etcdPrefix = "/registry/test/jobset.x-k8s.io/jobsets/ns/"

func keyOf(name string) string { return "/jobset.x-k8s.io/jobsets/ns/" + name }

// env is a real etcd, and the storage of JobSets on it as the server has it.
type env struct {
	t      *testing.T
	etcd   *etcd.Server
	client *clientv3.Client
	codec  *watchcache.Sharing
	// Those below belong to the server that was started last.
	store   storage.Interface
	objects *Objects
}

func newCodec() *watchcache.Sharing {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	return watchcache.NewSharing(codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), v1alpha2.SchemeGroupVersion, runtime.InternalGroupVersioner))
}

func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{t: t, codec: newCodec(), etcd: etcdtest.StartServer(t)}
	var err error
	e.client, err = clientv3.New(clientv3.Config{Endpoints: []string{e.etcd.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.client.Close() })
	return e
}

type static generic.RESTOptions

func (s static) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions(s), nil
}

// start begins to serve, and waits until the watch cache is filled.
func (e *env) start(transformer value.Transformer) {
	e.t.Helper()
	e.serve(transformer, true)
	e.eventually("the watch cache is filled", func() bool { return e.store.ReadinessCheck() == nil })
}

func (e *env) serve(transformer value.Transformer, cached bool) {
	e.t.Helper()
	config := storagebackend.NewDefaultConfig("/registry/test", e.codec)
	config.Transport.ServerList, config.Transformer = []string{e.etcd.Endpoint()}, transformer
	next := static(generic.RESTOptions{StorageConfig: config.ForResource(jobSets)})
	e.objects = NewObjects()
	caching := watchcache.Decorate(next, e.codec, func(schema.GroupResource) bool { return cached }, Wrap)
	options, err := caching.GetRESTOptions(jobSets, &jobset.JobSet{})
	if err != nil {
		e.t.Fatal(err)
	}
	keyFunc := func(obj runtime.Object) (string, error) { return keyOf(obj.(*jobset.JobSet).Name), nil }
	newFunc := func() runtime.Object { return &jobset.JobSet{} }
	tolerating := e.objects.Tolerate(options.StorageConfig, "/jobset.x-k8s.io/jobsets", newFunc)
	store, destroy, err := options.Decorator(tolerating, "/jobset.x-k8s.io/jobsets", keyFunc, newFunc,
		func() runtime.Object { return &jobset.JobSetList{} }, storage.DefaultNamespaceScopedAttr, nil, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(destroy)
	if e.store, err = Serve(store, tolerating); err != nil {
		e.t.Fatal(err)
	}
}

func newSet(name string) *jobset.JobSet {
	set := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch.jobset-apiserver.io/v1alpha1", Kind: "SequentialJob", Name: "owner", UID: "o"}},
	}}
	set.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "workers", GroupName: ptr.To("default"), Replicas: ptr.To[int32](4)}}
	return set
}

func (e *env) create(name string) {
	e.t.Helper()
	if err := e.store.Create(e.t.Context(), keyOf(name), newSet(name), nil, 0); err != nil {
		e.t.Fatal(err)
	}
}

// stored returns the bytes of an object in etcd.
func (e *env) stored(name string) []byte {
	e.t.Helper()
	response, err := e.client.Get(e.t.Context(), etcdPrefix+name)
	if err != nil {
		e.t.Fatal(err)
	}
	if len(response.Kvs) == 0 {
		return nil
	}
	return response.Kvs[0].Value
}

func (e *env) put(name string, data []byte) {
	e.t.Helper()
	if _, err := e.client.Put(e.t.Context(), etcdPrefix+name, string(data)); err != nil {
		e.t.Fatal(err)
	}
}

// list returns what a list shows, by name; from etcd, or from the watch cache with version 0.
func (e *env) list(version string) map[string]*jobset.JobSet {
	e.t.Helper()
	var list jobset.JobSetList
	opts := storage.ListOptions{ResourceVersion: version, Recursive: true, Predicate: storage.Everything}
	e.eventually("a list is answered", func() bool { // it is not while the watch cache lists again
		list = jobset.JobSetList{}
		return e.store.GetList(e.t.Context(), "/jobset.x-k8s.io/jobsets/", opts, &list) == nil
	})
	found := map[string]*jobset.JobSet{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found
}

func (e *env) eventually(what string, done func() bool) {
	e.t.Helper()
	poll.Until(e.t, what, done)
}
