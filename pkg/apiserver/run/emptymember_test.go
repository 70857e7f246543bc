// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// heard keeps events.
type heard struct{ events []provider.Event }

func (h *heard) Record(event provider.Event) { h.events = append(h.events, event) }

// TestMostMembersLostTheirData has two members with empty data directories find out that there is no store any more.
func TestMostMembersLostTheirData(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name}}
	if err := (&witness.Record{UUID: "a", Floor: 7, Cluster: witness.NewCluster("1f")}).Write(cm); err != nil {
		t.Fatal(err)
	}
	kube, told := fake.NewClientset(cm), &heard{}
	one, two := &emptyMember{name: "js-0", kube: kube, told: told}, &emptyMember{name: "js-2", kube: kube, told: told}
	alone := fmt.Errorf("%w: no answer", etcd.ErrAlone)
	other := errors.New("another reason")
	if err := one.explain(t.Context(), other); !errors.Is(err, other) {
		t.Errorf("another reason is explained as %v", err)
	}
	if err := one.explain(t.Context(), alone); !errors.Is(err, etcd.ErrAlone) || len(told.events) > 0 {
		t.Errorf("one empty member: %v, %v", err, told.events)
	}
	const want = "the data directories of js-0 and js-2 are empty, so that most of the members have lost their data: put the right volumes back, or " +
		"restore a backup on the first member as docs/operations/backup.md describes"
	for range 2 {
		for _, m := range []*emptyMember{two, one} {
			if err := m.explain(t.Context(), alone); err == nil || err.Error() != want {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
	writes := 0
	for _, action := range kube.Actions() {
		if action.GetVerb() == "update" {
			writes++
		}
	}
	if writes != 2 || len(told.events) != 2 || told.events[0].Reason != "StoreLost" || !told.events[0].Warning {
		t.Errorf("%d writes, events %+v", writes, told.events)
	}
	record, err := readRecord(t.Context(), kube)
	if err != nil || record.UUID != "a" || record.Floor != 7 || len(record.Cluster.Empty) != 2 {
		t.Errorf("record %+v, %v", record, err)
	}
}
