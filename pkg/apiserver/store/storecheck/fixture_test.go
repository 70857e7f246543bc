// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/watchcache"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	testPrefix = "/registry/test"
	cluster    = types.UID("cluster")
	lwsGroup   = "leaderworkerset.x-k8s.io"
)

var lwsResource = schema.GroupResource{Group: lwsGroup, Resource: "leaderworkersets"}

// member is a real etcd whose data can be exchanged behind the same address.
type member struct {
	t      testing.TB
	root   string
	server *etcd.Server
}

func newMember(t testing.TB) *member {
	t.Helper()
	m := &member{t: t, root: etcdtest.Dir(t)}
	m.start()
	t.Cleanup(func() { m.server.Close() })
	return m
}

func (m *member) dir(name string) string { return filepath.Join(m.root, name) }

func (m *member) start() {
	m.t.Helper()
	m.server = etcdtest.Run(m.t, m.dir("data"))
}

// keep copies the data under a name.
func (m *member) keep(name string) {
	m.t.Helper()
	m.server.Close()
	if err := os.CopyFS(filepath.Join(m.dir(name), "etcd"), os.DirFS(filepath.Join(m.dir("data"), "etcd"))); err != nil {
		m.t.Fatal(err)
	}
	m.start()
}

// exchange makes other data answer at the same address, which is empty unless it was kept.
func (m *member) exchange(name string) {
	m.t.Helper()
	m.server.Close()
	if err := os.RemoveAll(m.dir("data")); err != nil {
		m.t.Fatal(err)
	}
	if name != "" {
		if err := os.CopyFS(m.dir("data"), os.DirFS(m.dir(name))); err != nil {
			m.t.Fatal(err)
		}
	}
	m.start()
}

func (m *member) transport() storagebackend.TransportConfig {
	return storagebackend.TransportConfig{ServerList: []string{m.server.Endpoint()}}
}

// told keeps events.
type told struct{ events chan provider.Event }

func (r told) Record(event provider.Event) { r.events <- event }

// main is a main cluster.
type main struct {
	kube   *fake.Clientset
	events chan provider.Event
	// report is what the check of owners finds.
	report      owners.Report
	definitions []owners.Definition
	// lostGroup is the API group of lost owners.
	lostGroup string
	// routes are the groups of the server, and created those of which the store has objects.
	routes  map[string]Route
	created sets.Set[string]
	err     error
	checks  int
}

func newMain() *main {
	return &main{
		kube:   fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: witness.Namespace, UID: cluster}}),
		events: make(chan provider.Event, 100), lostGroup: jobset.GroupName,
		routes: map[string]Route{jobset.GroupName: {}, lwsGroup: {}},
	}
}

// guard returns a guard of the member's store.
func (m *main) guard(t testing.TB, store *member) *Guard {
	t.Helper()
	g, err := New(Config{
		Transport: store.transport(), Prefix: testPrefix, Main: m.kube, Recorder: told{m.events}, Version: "v1",
		Routes: func(context.Context) (map[string]Route, error) { return maps.Clone(m.routes), m.err },
		Owners: func(_ context.Context, groups sets.Set[string]) (owners.Report, error) {
			m.checks++
			if !groups.Has(m.lostGroup) {
				return owners.Report{}, m.err
			}
			return m.report, m.err
		},
		Definitions: func(_ context.Context, groups sets.Set[string]) ([]owners.Definition, error) {
			return slices.DeleteFunc(slices.Clone(m.definitions), func(d owners.Definition) bool { return !groups.Has(d.Group) }), m.err
		},
		Created: func(_ context.Context, group string) (bool, error) { return m.created.Has(group), m.err },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(t.Context()) })
	return g
}

// record returns the half of the witness in the main cluster; nil if there is none.
func (m *main) record(t testing.TB) *witness.Record {
	t.Helper()
	list, err := m.kube.CoreV1().ConfigMaps(witness.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Name == witness.Name {
			record, err := witness.Read(&list.Items[i])
			if err != nil {
				t.Fatal(err)
			}
			return record
		}
	}
	return nil
}

// change changes the record as an administrator does; a nil result deletes it.
func (m *main) change(t testing.TB, change func(*witness.Record) *witness.Record) {
	t.Helper()
	maps := m.kube.CoreV1().ConfigMaps(witness.Namespace)
	record := change(m.record(t))
	err := maps.Delete(t.Context(), witness.Name, metav1.DeleteOptions{})
	if err == nil && record != nil {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: witness.Name, Namespace: witness.Namespace}}
		if err = record.Write(cm); err == nil {
			_, err = maps.Create(t.Context(), cm, metav1.CreateOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// turns lets the guard look until nothing is left to do at once.
func turns(t testing.TB, g *Guard) error {
	t.Helper()
	for range maxRetries {
		if err := g.turn(t.Context()); err != errAgain {
			return err
		}
	}
	t.Fatal("the guard does not come to an end")
	return nil
}

// started returns a guard that serves.
func (m *main) started(t testing.TB, store *member) *Guard {
	t.Helper()
	g := m.guard(t, store)
	if err := turns(t, g); err != nil || !g.Serving() {
		t.Fatalf("serving %t: %v", g.Serving(), err)
	}
	return g
}

// storageOf returns the storage of JobSets behind the guard, or without one. It has a watch cache if that is wanted.
func storageOf(t testing.TB, store *member, g *Guard, cached bool) storage.Interface {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	codec := watchcache.NewSharing(codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), v1alpha2.SchemeGroupVersion, runtime.InternalGroupVersioner))
	resource := schema.GroupResource{Group: jobset.GroupName, Resource: "jobsets"}
	config := storagebackend.NewDefaultConfig(testPrefix, codec)
	config.Transport = store.transport()
	var wrap watchcache.Wrapper
	if g != nil {
		wrap = g.Wrap
	}
	next := static(generic.RESTOptions{StorageConfig: config.ForResource(resource)})
	options, err := watchcache.Decorate(next, codec, func(schema.GroupResource) bool { return cached }, wrap).GetRESTOptions(resource, &jobset.JobSet{})
	if err != nil {
		t.Fatal(err)
	}
	keyFunc := func(obj runtime.Object) (string, error) { return keyOf(obj.(*jobset.JobSet).Name), nil }
	s, destroy, err := options.Decorator(options.StorageConfig, "/jobsets/", keyFunc, func() runtime.Object { return &jobset.JobSet{} },
		func() runtime.Object { return &jobset.JobSetList{} }, storage.DefaultNamespaceScopedAttr, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g != nil {
			g.ending.set() // the watch cache may wait for the guard
		}
		destroy()
	})
	return s
}

type static generic.RESTOptions

func (g static) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions(g), nil
}

func keyOf(name string) string { return "/jobsets/ns/" + name }

func newSet(name string, uid types.UID) *jobset.JobSet {
	return &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
}

func create(t testing.TB, s storage.Interface, set *jobset.JobSet) {
	t.Helper()
	if err := s.Create(t.Context(), keyOf(set.Name), set, nil, 0); err != nil {
		t.Fatal(err)
	}
}

// exchangeWith makes data from elsewhere answer at the same address.
func (m *member) exchangeWith(dir string) {
	m.t.Helper()
	if err := os.CopyFS(m.dir("elsewhere"), os.DirFS(dir)); err != nil {
		m.t.Fatal(err)
	}
	m.exchange("elsewhere")
}
