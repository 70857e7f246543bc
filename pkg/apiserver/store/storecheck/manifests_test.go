// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// forbidCreate takes a permission away that the manifests do not give.
func (m *main) forbidCreate() {
	m.kube.PrependReactor("create", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), witness.Name, errors.New("no"))
	})
}

// TestManifestsHaveTheRecord: the ConfigMaps of the manifests are empty, and the server may only update them.
func TestManifestsHaveTheRecord(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	for _, name := range []string{witness.Name, witness.LostOwnersName} {
		if err := main.kube.Tracker().Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	main.forbidCreate()
	main.report = orphans
	g := main.guard(t, store)
	refusal := main.refused(t, g, witness.ReasonUnknownOwners)
	checkLost(t, main, refusal)
	main.report = owners.Report{}
	g.refusal.counted = time.Time{} // some time later
	served(t, g)
	if record := main.record(t); !record.Adopted() || record.Refusal != nil {
		t.Errorf("the record is %+v", record)
	}
}

// TestRecordThatMustNotBeCreated deletes the ConfigMap. The key in the store says enough to serve it; without one nothing is served.
func TestRecordThatMustNotBeCreated(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	running := main.started(t, store)
	main.change(t, func(*witness.Record) *witness.Record { return nil })
	main.forbidCreate()
	const want = "ConfigMap kube-system/jobset-apiserver-store of the main cluster does not exist, and the server may not create it; apply the manifests of the server, " +
		"or run kubectl -n kube-system create configmap jobset-apiserver-store: "
	if err := running.raise(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) || !running.Serving() {
		t.Errorf("while the server runs: %v, serving %t", err, running.Serving())
	}
	main.started(t, store)
	empty := main.guard(t, newMember(t))
	if err := turns(t, empty); err == nil || !strings.HasPrefix(err.Error(), want) || empty.Serving() {
		t.Errorf("at a first start: %v, serving %t", err, empty.Serving())
	}
}
