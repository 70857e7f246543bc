// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestAcceptNamespacesInPages: a list that expires in the middle starts again, and no object counts twice.
func TestAcceptNamespacesInPages(t *testing.T) {
	const count = 5
	for _, try := range []string{"none", "client"} {
		var objects []runtime.Object
		for i := range count {
			objects = append(objects, stored("team-a", "JobSet", fmt.Sprintf("set-%d", i), ""))
		}
		m := inNamespaces(t, "", objects...)
		lists := 0
		m.fakeMetadata().PrependReactor("list", "jobsets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			lists++
			if lists == 2 {
				return true, nil, apierrors.NewResourceExpired("the list is too old")
			}
			list := &metav1.List{}
			for i := range count {
				object, err := m.fakeMetadata().Tracker().Get(action.GetResource(), "team-a", fmt.Sprintf("set-%d", i))
				if err != nil {
					return true, nil, err
				}
				if lists == 1 && i == 2 {
					list.Continue = "more"
					break
				}
				list.Items = append(list.Items, runtime.RawExtension{Object: object})
			}
			return true, list, nil
		})
		got := m.run("accept", "--namespaces=missing", "--dry-run="+try)
		if want := fmt.Sprintf("namespace team-a: %d objects accepted", count); !strings.HasPrefix(got.out, want) || lists != 3 {
			t.Errorf("--dry-run=%s: %+v after %d lists", try, got, lists)
		}
	}
}

func TestAcceptNamespacesRefusals(t *testing.T) {
	routes := map[string]string{"namespaces": "reading namespace team-a: not now", "apiservices": "reading APIService v1alpha2.jobset.x-k8s.io: not now"}
	for resource, message := range routes {
		m := inNamespaces(t, "", stored("team-a", "JobSet", "a", ""))
		refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewServiceUnavailable("not now")
		}
		m.kube.PrependReactor("get", resource, refuse)
		m.dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("get", resource, refuse)
		if got := m.run("accept", "--namespaces=all"); got.message != message || got.code != 1 {
			t.Errorf("%s: %+v", resource, got)
		}
	}
	for message, args := range map[string][]string{
		`--namespaces: must be missing or all, not "some"`:                                                                       {"--namespaces=some"},
		`--namespaces: must be missing or all, not ""`:                                                                           {"--namespaces="},
		"--uuid: must not be set with --namespaces: accept the store first, and its objects once the server serves them":         {"--namespaces=all", "--uuid=" + newUUID},
		"--revision: must not be set with --namespaces: accept the store first, and its objects once the server serves them":     {"--namespaces=all", "--revision=7"},
		"--abandon-jobs: must not be set with --namespaces: accept the store first, and its objects once the server serves them": {"--namespaces=all", "--abandon-jobs"},
		"--namespace: must be set with --namespaces only: a store is accepted as a whole":                                        {"--uuid=" + newUUID, "--revision=7", "--namespace=team-a"},
		`--dry-run: must be none, server or client, not "yes"`:                                                                   {"--namespaces=all", "--dry-run=yes"},
	} {
		if got := newCluster(t).run(append([]string{"accept"}, args...)...); got.message != message {
			t.Errorf("%v: %q, want %q", args, got.message, message)
		}
	}
	m := inNamespaces(t, "")
	m.dynamic = dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	if got := m.run("accept", "--namespaces=all"); !strings.HasPrefix(got.message, "the cluster serves no resources of jobset-apiserver: if a server refuses its store, accept that first") {
		t.Errorf("nothing is served: %+v", got)
	}
}
