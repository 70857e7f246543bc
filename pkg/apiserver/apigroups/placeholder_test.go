// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apigroups

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// stores says how to store resources in an etcd of the test.
type stores struct{ config *storagebackend.Config }

func (s stores) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{StorageConfig: s.config.ForResource(resource), Decorator: generic.UndecoratedStorage,
		ResourcePrefix: path.Join(resource.Group, resource.Resource)}, nil
}

// silent records nothing.
type silent struct{}

func (silent) Record(provider.Event) {}

// TestPlaceholdersAreNotStored sends objects with the annotation of placeholders to every resource and subresource of every group. None is
// stored, because spec and status of a placeholder say nothing about its object.
func TestPlaceholdersAreNotStored(t *testing.T) {
	server := etcdtest.StartServer(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, group := range All() {
		group.Install(scheme)
	}
	gates, err := features.NewGate()
	if err == nil {
		err = gates.SetFromMap(map[string]bool{string(features.ElasticJobSet): true}) // without it, a JobSet cannot be scaled at all
	}
	if err != nil {
		t.Fatal(err)
	}
	codecs, seen := serializer.NewCodecFactory(scheme), map[string]int{}
	for _, group := range All().InEtcd() {
		codec := codecs.LegacyCodec(group.StorageVersion)
		config := storagebackend.NewDefaultConfig("/registry", codec)
		config.Transport.ServerList = []string{server.Endpoint()}
		storage, err := group.Storage(provider.Host{Getter: stores{config}, Scheme: scheme, Gates: gates, Now: time.Now, Recorder: silent{}})
		if err != nil {
			t.Fatal(err)
		}
		for name, served := range storage[group.StorageVersion.Version] {
			t.Run(group.Group()+"/"+name, func(t *testing.T) {
				resource, sub, _ := strings.Cut(name, "/")
				main := storage[group.StorageVersion.Version][resource].New()
				named(t, main, nil)
				if set, ok := main.(*jobset.JobSet); ok {
					set.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "w"}}
					set.Spec.ReplicatedJobs[0].Template.Spec = batchv1.JobSpec{
						CompletionMode: ptr.To(batchv1.IndexedCompletion), Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1),
					}
				}
				data, err := runtime.Encode(codec, main)
				if err == nil {
					_, err = client.Put(t.Context(), "/registry/"+path.Join(group.Group(), resource, "ns", "a"), string(data))
				}
				if err != nil {
					t.Fatal(err)
				}
				if convertor, ok := served.(rest.TableConvertor); ok && sub == "" && group.Group() != "disaggregatedset.x-k8s.io" { // which has upstream's columns
					checkTable(t, convertor, main)
				}
				for verb, err := range writes(t, served, sub) {
					seen[verb]++
					want := "metadata.annotations[" + unreadable.Annotation + "]"
					if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want+": Forbidden: must not be set: the server sets it on placeholders") {
						t.Errorf("%s: %v, want that %s is refused", verb, err, want)
					}
				}
			})
		}
	}
	if seen["create"] < 6 || seen["update"] < 15 || seen["action"] < 5 {
		t.Errorf("too few kinds of writes were tried: %v", seen)
	}
}

// checkTable prints a placeholder.
func checkTable(t *testing.T, convertor rest.TableConvertor, object runtime.Object) {
	t.Helper()
	object = object.DeepCopyObject()
	named(t, object, map[string]string{unreadable.Annotation: "its bytes are damaged"})
	table, err := convertor.ConvertToTable(t.Context(), object, nil)
	if err != nil || !slices.Contains(table.Rows[0].Cells, any("Unreadable")) {
		t.Errorf("the row does not say that the object cannot be read: %v, %v", table, err)
	}
}

func named(t *testing.T, obj runtime.Object, annotations map[string]string) {
	t.Helper()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	accessor.SetNamespace("ns")
	accessor.SetName("a")
	accessor.SetUID("uid")
	accessor.SetAnnotations(annotations)
}

// writes sends a placeholder with every verb that a resource has, and returns the answers.
func writes(t *testing.T, to rest.Storage, sub string) map[string]error {
	t.Helper()
	ctx := request.WithUser(request.WithNamespace(t.Context(), "ns"), nil)
	marked := to.New()
	named(t, marked, map[string]string{unreadable.Annotation: "its bytes are damaged"})
	answers := map[string]error{}
	if main, ok := to.(rest.StandardStorage); ok && sub == "" {
		fresh := marked.DeepCopyObject()
		named(t, fresh, map[string]string{unreadable.Annotation: "its bytes are damaged"})
		_, answers["create"] = main.Create(ctx, fresh, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	}
	if updater, ok := to.(rest.Updater); ok {
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			next := old.DeepCopyObject()
			accessor, err := meta.Accessor(next)
			if err == nil {
				accessor.SetAnnotations(map[string]string{unreadable.Annotation: "its bytes are damaged"})
			}
			return next, err
		})
		_, _, answers["update"] = updater.Update(ctx, "a", info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	}
	if action, ok := to.(rest.NamedCreater); ok {
		_, answers["action"] = action.Create(ctx, "a", marked, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	}
	return answers
}
