// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package owners_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
)

// mainCluster is an API server that has metadata only, in pages.
type mainCluster struct {
	t testing.TB
	// jobs and claims return an object; there are as many as jobCount and claimCount say.
	jobs, claims         func(int) metav1.PartialObjectMetadata
	jobCount, claimCount int
	// others are objects of other resources.
	others map[string][]metav1.PartialObjectMetadata
	// refuse returns an error for a request if it is not nil.
	refuse func(resource string, begin int) *apierrors.StatusError
	// before is called before each page.
	before func()

	mu    sync.Mutex
	pages []string
}

func (m *mainCluster) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if document, found := discovered[req.URL.Path]; found {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write([]byte(document))
		return
	}
	resource := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	limit, err := strconv.Atoi(req.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 500 || !strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		m.t.Errorf("%s reads more than the metadata of 500 objects at once: %s", req.URL, req.Header.Get("Accept"))
	}
	begin, _ := strconv.Atoi(req.URL.Query().Get("continue"))
	m.mu.Lock()
	m.pages = append(m.pages, fmt.Sprintf("%s %d", resource, begin))
	m.mu.Unlock()
	if m.before != nil {
		m.before()
	}
	if m.refuse != nil {
		if err := m.refuse(resource, begin); err != nil {
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			w.WriteHeader(int(err.ErrStatus.Code))
			err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			_ = json.NewEncoder(w).Encode(err.ErrStatus)
			return
		}
	}
	of, count := m.jobs, m.jobCount
	switch resource {
	case "jobs":
	case "persistentvolumeclaims":
		of, count = m.claims, m.claimCount
	default:
		others := m.others[resource]
		of, count = func(i int) metav1.PartialObjectMetadata { return others[i] }, len(others)
	}
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for i := begin; i < min(begin+limit, count); i++ {
		list.Items = append(list.Items, of(i))
	}
	if begin+limit < count {
		list.Continue = strconv.Itoa(begin + limit)
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	if err := protobuf.NewSerializer(nil, nil).Encode(list, w); err != nil {
		m.t.Error(err)
	}
}

// discovered is what the cluster says about its groups. It serves PodGroups of Volcano, and Workloads of Kueue, in the second version.
var discovered = map[string]string{
	"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis": `{"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]},
		{"name": "scheduling.volcano.sh", "versions": [{"groupVersion": "scheduling.volcano.sh/v1beta1", "version": "v1beta1"}]},
		{"name": "kueue.x-k8s.io", "versions": [{"groupVersion": "kueue.x-k8s.io/v1", "version": "v1"}, {"groupVersion": "kueue.x-k8s.io/v1beta1", "version": "v1beta1"}]}]}`,
	"/apis/scheduling.volcano.sh/v1beta1": `{"kind": "APIResourceList", "resources": [{"name": "podgroups"}]}`,
	"/apis/kueue.x-k8s.io/v1":             `{"kind": "APIResourceList", "resources": [{"name": "clusterqueues"}]}`,
	"/apis/kueue.x-k8s.io/v1beta1":        `{"kind": "APIResourceList", "resources": [{"name": "workloads"}]}`,
}

// groupsOfServer are the groups of the server.
var groupsOfServer = sets.New("jobset.x-k8s.io", "leaderworkerset.x-k8s.io")

// checker returns a checker of this cluster, with a store that knows what known returns.
func (m *mainCluster) checker(known func(call int) sets.Set[types.UID]) *owners.Checker {
	m.t.Helper()
	server := httptest.NewServer(m)
	m.t.Cleanup(server.Close)
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		m.t.Fatal(err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		m.t.Fatal(err)
	}
	calls := 0
	return &owners.Checker{Metadata: client, Discovery: found, Known: func(context.Context) (sets.Set[types.UID], error) {
		calls++
		return known(calls), nil
	}}
}

// owned returns an object with a controller.
func owned(name, apiVersion string, uid types.UID) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "not-a-controller"},
			{APIVersion: apiVersion, Kind: "JobSet", Name: "set", UID: uid, Controller: ptr.To(true)},
		},
	}}
}

const (
	jobSetVersion = "jobset.x-k8s.io/v1alpha2"
	lws           = "leaderworkerset.x-k8s.io/v1"
)

func uidOf(i int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)) }

func knows(uids ...types.UID) func(int) sets.Set[types.UID] {
	return func(int) sets.Set[types.UID] { return sets.New(uids...) }
}
