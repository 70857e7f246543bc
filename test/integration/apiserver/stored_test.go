// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/dynamic"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

const (
	// storedDir has for each release what it has stored (.pb) and how it served that (.json), with every field used.
	storedDir = "../../testdata/store"
	// updateStored names a release whose files are written: UPDATE_STORED=v0.2.0. Those of a release never change afterwards.
	updateStored = "UPDATE_STORED"
)

// filled are objects with every field used, by resource.
var filled = map[schema.GroupVersionResource]string{
	jobsets:        "../../../pkg/apis/jobset/v1alpha2/testdata/HEAD/jobset.x-k8s.io.v1alpha2.JobSet.json",
	sequentialJobs: "../../../pkg/apis/batch/v1alpha1/testdata/HEAD/batch.jobset-apiserver.io.v1alpha1.SequentialJob.json",
	podGroups:      "../../../pkg/apis/batch/v1alpha1/testdata/HEAD/batch.jobset-apiserver.io.v1alpha1.PodReadinessGroup.json",
}

var (
	sequentialJobs = batchv1alpha1.SchemeGroupVersion.WithResource("sequentialjobs")
	podGroups      = batchv1alpha1.SchemeGroupVersion.WithResource("podreadinessgroups")
)

// TestStoredObjectsOfReleases: the present server serves what each release has stored as that release did.
func TestStoredObjectsOfReleases(t *testing.T) {
	if release := os.Getenv(updateStored); release != "" {
		writeStored(t, filepath.Join(storedDir, release))
	}
	releases, err := filepath.Glob(filepath.Join(storedDir, "v*"))
	if err != nil || len(releases) == 0 {
		t.Fatalf("%v, %v", releases, err)
	}
	for _, release := range releases {
		t.Run(filepath.Base(release), func(t *testing.T) {
			dir := framework.ShortDir(t)
			data := filepath.Join(dir, "data")
			for resource := range filled {
				content, err := os.ReadFile(filepath.Join(release, resource.GroupResource().String()+".pb"))
				if err != nil {
					t.Fatal(err)
				}
				seed(t, data, resource, content)
			}
			server := plane.StartServer(t, framework.Embedded(data)...)
			objects, err := dynamic.NewForConfig(server.Config(t))
			if err != nil {
				t.Fatal(err)
			}
			for resource := range filled {
				compareServed(t, objects.Resource(resource), filepath.Join(release, resource.GroupResource().String()+".json"))
			}
			file := filepath.Join(dir, "b.db")
			storeTool(t, 0, "verified.", "backup", file, "--data-dir="+data)
			storeTool(t, 0, "can read all objects.\n", "verify", file)
		})
	}
}

// writeStored makes what this version stores of the filled objects.
func writeStored(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, codecs := apiserver.NewScheme()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	codec := codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), apigroups.All().StorageVersions(), runtime.InternalGroupVersioner)
	for resource, file := range filled {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		obj, _, err := codec.Decode(content, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := (storage.APIObjectVersioner{}).PrepareObjectForStorage(obj); err != nil {
			t.Fatal(err)
		}
		stored, err := runtime.Encode(codec, obj)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, resource.GroupResource().String()+".pb"), stored, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// seed stores bytes in the data of an embedded etcd. Filled objects have the names of their fields as values.
func seed(t *testing.T, data string, resource schema.GroupVersionResource, content []byte) {
	t.Helper()
	store, err := etcd.Open(etcd.Config{DataDir: data, QuotaBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	key := strings.Join([]string{"/registry/jobset-apiserver", resource.Group, resource.Resource, "namespaceValue", "nameValue"}, "/")
	if _, err := client.Put(t.Context(), key, string(content)); err != nil {
		t.Fatal(err)
	}
}

// compareServed wants an object to be served as a file says, alone and in a list.
func compareServed(t *testing.T, objects dynamic.NamespaceableResourceInterface, file string) {
	t.Helper()
	got, err := objects.Namespace("namespaceValue").Get(t.Context(), "nameValue", metav1.GetOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	list, err := objects.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || !cmp.Equal(list.Items[0].Object, got.Object) {
		t.Errorf("the list is %v, %v", list, err)
	}
	got.SetResourceVersion("")
	if os.Getenv(updateStored) == filepath.Base(filepath.Dir(file)) {
		content, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(content, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
