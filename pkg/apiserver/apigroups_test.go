// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	clientrest "k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// readOnly is a resource that can be read and is stored nowhere.
type readOnly struct{ object runtime.Object }

func (r readOnly) New() runtime.Object   { return r.object.DeepCopyObject() }
func (readOnly) Destroy()                {}
func (readOnly) NamespaceScoped() bool   { return true }
func (readOnly) GetSingularName() string { return "thing" }
func (r readOnly) Get(context.Context, string, *metav1.GetOptions) (runtime.Object, error) {
	return r.New(), nil
}

// twoGroups are the group of JobSets and one that only this test has, both without a store.
func twoGroups() apigroups.List {
	group := func(version schema.GroupVersion, install func(*runtime.Scheme), resource string, object runtime.Object) apigroups.Group {
		return apigroups.Group{Provider: provider.Provider{
			Versions: []schema.GroupVersion{version}, StorageVersion: version, Install: install, Resources: []string{resource},
			NewStorage: func(provider.Host) (map[string]map[string]rest.Storage, error) {
				return map[string]map[string]rest.Storage{version.Version: {resource: readOnly{object}, resource + "/status": readOnly{object}}}, nil
			},
		}}
	}
	return apigroups.List{
		group(v1alpha2.SchemeGroupVersion, apigroups.All()[0].Install, "jobsets", &jobset.JobSet{}),
		group(batchv1alpha1.SchemeGroupVersion, batchinstall.Install, "restarts", &batch.JobSetRestart{}),
	}
}

// served asks a server for its groups, and for the resources of each version.
func served(t *testing.T, s *genericserver.GenericAPIServer) map[string][]string {
	t.Helper()
	get := func(path string, into any) int {
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code == http.StatusOK {
			if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
				t.Fatal(err)
			}
		}
		return w.Code
	}
	var list metav1.APIGroupList
	get("/apis", &list)
	out := map[string][]string{}
	for _, group := range list.Groups {
		for _, version := range group.Versions {
			var resources metav1.APIResourceList
			get("/apis/"+version.GroupVersion, &resources)
			for _, resource := range resources.APIResources {
				out[version.GroupVersion] = append(out[version.GroupVersion], resource.Name)
			}
			slices.Sort(out[version.GroupVersion])
			var gates map[string]any
			if code := get("/apis/"+version.GroupVersion+"/featuregates", &gates); code != http.StatusOK {
				t.Errorf("feature gates of %s: %d", version.GroupVersion, code)
			}
		}
	}
	return out
}

func TestRuntimeConfigSwitchesGroups(t *testing.T) {
	jobsets, others := []string{"jobsets", "jobsets/status"}, []string{"restarts", "restarts/status"}
	const jobsetVersion, otherVersion = "jobset.x-k8s.io/v1alpha2", "batch.jobset-apiserver.io/v1alpha1"
	cases := map[string]struct {
		off  []schema.GroupVersion
		gone []schema.GroupVersionResource
		want map[string][]string
	}{
		"everything is on":       {want: map[string][]string{jobsetVersion: jobsets, otherVersion: others}},
		"one group is off":       {off: []schema.GroupVersion{batchv1alpha1.SchemeGroupVersion}, want: map[string][]string{jobsetVersion: jobsets}},
		"the other group is off": {off: []schema.GroupVersion{v1alpha2.SchemeGroupVersion}, want: map[string][]string{otherVersion: others}},
		"one resource is off": {
			gone: []schema.GroupVersionResource{batchv1alpha1.SchemeGroupVersion.WithResource("restarts")}, want: map[string][]string{jobsetVersion: jobsets},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t)
			config.APIGroups = twoGroups()
			config.Generic.LoopbackClientConfig = &clientrest.Config{}
			config.Generic.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, apiserver.NewDefinitionNamer())
			config.Generic.MergedResourceConfig = config.APIGroups.Enabled()
			config.Generic.MergedResourceConfig.DisableVersions(tc.off...)
			config.Generic.MergedResourceConfig.DisableResources(tc.gone...)
			s, err := config.Complete().New()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, served(t, s)); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

// Each group has a storage version of its own. Objects of all groups go through one encoder.
func TestObjectsAreStoredInTheVersionOfTheirGroup(t *testing.T) {
	_, codecs := apiserver.NewScheme()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	encoder := codecs.EncoderForVersion(info.Serializer, twoGroups().StorageVersions())
	for want, object := range map[string]runtime.Object{
		"jobset.x-k8s.io/v1alpha2": &jobset.JobSet{}, "batch.jobset-apiserver.io/v1alpha1": &batch.JobSetRestart{},
	} {
		stored, err := runtime.Encode(encoder, object)
		if err != nil {
			t.Fatal(err)
		}
		var got metav1.TypeMeta
		if err := json.Unmarshal(stored, &got); err != nil || got.APIVersion != want {
			t.Errorf("%T is stored as %s, want %s (%v)", object, got.APIVersion, want, err)
		}
	}
}

func TestProvidersListTheirResources(t *testing.T) {
	for name, change := range map[string]func(*provider.Provider){
		"a resource is not listed":  func(p *provider.Provider) { p.Resources = nil },
		"a resource has no storage": func(p *provider.Provider) { p.Resources = []string{"jobsets", "others"} },
	} {
		p := twoGroups()[0].Provider
		if _, err := p.Storage(provider.Host{}); err != nil {
			t.Fatal(err)
		}
		change(&p)
		if _, err := p.Storage(provider.Host{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Policies that change objects need the schema of everything that clients write.
func TestDefinitionNames(t *testing.T) {
	names, err := apiserver.NewDefinitionNames()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for version, definitions := range names {
		got[version.String()] = len(definitions)
	}
	want := map[string]int{"archive.jobset-apiserver.io/v1alpha1": 1, "jobset.x-k8s.io/v1alpha2": 1, "batch.jobset-apiserver.io/v1alpha1": 16, "disaggregatedset.x-k8s.io/v1": 2, "leaderworkerset.x-k8s.io/v1": 1, "autoscaling/v1": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
}
