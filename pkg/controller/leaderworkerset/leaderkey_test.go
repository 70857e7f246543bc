// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package leaderworkerset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	sets "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
)

// TestLeaderKey reads the key of the revision of the set from the revision of the StatefulSet that creates pods at it.
func TestLeaderKey(t *testing.T) {
	kube := fake.NewClientset()
	factory := informers.NewFactory(kube)
	kind := factory.For("leaderworkerset")
	c := newCaches(Config{Informers: kind, Sets: sets.NewClientset(), Kube: kube, Clock: clock.RealClock{}})
	if _, err := factory.Build(kind); err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]types.UID{"serve-1": "leader", "serve-2": "other"} {
		own, err := transform(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "serve", leaderworkersetv1.RevisionKey: "key-of-" + name},
			OwnerReferences: controlledBy("StatefulSet", "serve", owner),
		}})
		if err == nil {
			err = c.revisions.GetIndexer().Add(own)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for revision, want := range map[string]string{"serve-1": "key-of-serve-1", "serve-2": "", "serve-3": "", "": ""} {
		leader := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "serve", UID: "leader"}, Status: appsv1.StatefulSetStatus{CurrentRevision: revision}}
		if got, known := c.LeaderKey(leader); got != want || known != (want != "") {
			t.Errorf("%s: got %q, %t", revision, got, known)
		}
	}
}
