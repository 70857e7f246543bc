// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
)

// TestChildWithoutLabelsWaits has a child that exists and has lost its labels, which a webhook does not let it get back, while something
// happens each second. No cache shows it, so that it is to be created.
func TestChildWithoutLabelsWaits(t *testing.T) {
	owner := &metav1.ObjectMeta{Namespace: "ns", Name: "o", UID: "uid-o", Generation: 1}
	child := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "s", UID: "uid-s", ResourceVersion: "5", OwnerReferences: []metav1.OwnerReference{{UID: owner.UID, Controller: ptr.To(true)}},
	}}
	kube, now := fake.NewClientset(child), clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	asked, denies := map[string]int{}, true
	kube.PrependReactor("*", "services", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		asked[action.GetVerb()]++
		return action.GetVerb() == "patch" && denies, nil, deniedByWebhook("s")
	})
	store := consistency.NewConsistencyStore(now, map[string]consistency.Versioned{})
	host := &Host{Consistency: store, Runner: NewSlowStart(1), Clock: now}
	w := NewWriter(host, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "services", "service", In(kube.CoreV1().Services))
	create := func() error {
		defer now.SetTime(now.Now().Add(time.Second))
		return w.CreateAll(t.Context(), owner, Creations[*corev1.Service]{
			Children: []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}}, TakenFor: NamesTakenFor,
			Template: func(*corev1.Service) string { return "" },
			Repair: func(ctx context.Context, existing *corev1.Service, _ error) (Result, error) {
				return w.Relabel(ctx, owner, existing, map[string]string{"of": "o"})
			},
		}).Err
	}
	texts := map[string]bool{}
	for range 5 * 60 {
		err := create()
		texts[err.Error()] = true
		if next, only := AskAgain(err); !only || next.IsZero() {
			t.Fatalf("asked again at %s, %t: %v", next, only, err)
		}
	}
	if d := cmp.Diff(map[string]int{"create": 4, "get": 4, "patch": 4}, asked); d != "" || len(texts) != 1 {
		t.Errorf("requests in five minutes (-want +got):\n%s\nerrors: %v", d, texts)
	}
	owner.Generation++
	if err := create(); NotAsked(err) || asked["patch"] != 5 {
		t.Errorf("another generation of the owner: %v, %v", err, asked)
	}
	denies = false
	for range 5 {
		_ = create()
	}
	if err := create(); err != nil || asked["patch"] != 6 {
		t.Errorf("once the webhook accepts the labels: %v, %v", err, asked)
	}
}
