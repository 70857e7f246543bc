// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
)

// What is absent stays absent unless the published schema has a default for it: how a role is rolled depends on that.
func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	const given = `{"apiVersion":"disaggregatedset.x-k8s.io/v1","kind":"DisaggregatedSet","spec":{"placementPolicy":{},"roles":[
{"name":"prefill","spec":{"leaderWorkerTemplate":{"workerTemplate":{"spec":{"containers":[{"name":"c","ports":[{"containerPort":80}]}]}}}}},
{"name":"decode","scaling":{},"spec":{"networkConfig":{},"rolloutStrategy":{"rollingUpdateConfiguration":{"maxSurge":2}},
"leaderWorkerTemplate":{"restartPolicy":"Default","subGroupPolicy":{},"workerTemplate":{"spec":{"containers":[{"name":"c"}]}}}}}]}}`
	const want = `{"slices":1,"placementPolicy":{"type":"None"},"roles":[
{"name":"prefill","spec":{"replicas":1,"startupPolicy":"LeaderCreated","leaderWorkerTemplate":{"size":1,"restartPolicy":"RecreateGroupOnPodRestart",
"workerTemplate":{"metadata":{},"spec":{"containers":[{"name":"c","resources":{},"ports":[{"containerPort":80,"protocol":"TCP"}]}]}}}}},
{"name":"decode","scaling":{"mode":"Static"},"spec":{"replicas":1,"startupPolicy":"LeaderCreated","networkConfig":{"subdomainPolicy":"Shared"},
"rolloutStrategy":{"type":"RollingUpdate","rollingUpdateConfiguration":{"partition":0,"maxUnavailable":1,"maxSurge":2}},
"leaderWorkerTemplate":{"size":1,"restartPolicy":"Default","subGroupPolicy":{"subGroupPolicyType":"LeaderWorker"},
"workerTemplate":{"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]}}}}}]}`
	hub, err := runtime.Decode(codecs.UniversalDecoder(), []byte(given))
	if err != nil {
		t.Fatal(err)
	}
	ds := &disaggregatedsetv1.DisaggregatedSet{}
	if err := scheme.Convert(hub, ds, nil); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(ds.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var wantValue, gotValue any
	for text, into := range map[string]*any{want: &wantValue, string(data): &gotValue} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(wantValue, gotValue); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}
