// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/consistency"
)

// TestContestedAdoption has an orphan whose adoption another party, or a server, prevents while something happens each second.
func TestContestedAdoption(t *testing.T) {
	for name, tc := range map[string]struct {
		// denies means that the server denies the adoption; else another party undoes it.
		denies  bool
		patches int
		message string
	}{
		"another party releases it each time": {false, 5, "another party removed or changed the controller reference of service s 3 times within a minute, " +
			"each time after the controller had set it; the API does not say who does, the audit log does; the controller sets it again at 2026-01-01T00:07:02Z"},
		"a webhook denies it": {true, 4, `admission webhook "w" denied the request: no`},
	} {
		t.Run(name, func(t *testing.T) {
			orphan := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "uid-s", ResourceVersion: "5"}}
			kube, now := fake.NewClientset(orphan), clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			gets, patches := 0, 0
			kube.PrependReactor("*", "services", func(action clientgotesting.Action) (bool, runtime.Object, error) {
				switch action.GetVerb() {
				case "get":
					gets++
				case "patch":
					patches++
					return tc.denies, nil, deniedByWebhook("s")
				}
				return false, nil, nil
			})
			store := consistency.NewConsistencyStore(now, map[string]consistency.Versioned{})
			host := &Host{Consistency: store, Runner: NewSlowStart(1), Clock: now}
			w := NewWriter(host, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "services", "service", In(kube.CoreV1().Services))
			owner := &metav1.ObjectMeta{Namespace: "ns", Name: "o", UID: "uid-o", Generation: 1}
			adopt := func() error {
				_, err := w.Adopt(t.Context(), owner, Ref{Name: "s", UID: "uid-s"}, metav1.OwnerReference{UID: owner.UID}, func(s *corev1.Service) bool {
					return len(s.OwnerReferences) == 0
				})
				return err
			}
			var err error
			for range 5 * 60 {
				err = adopt()
				if err := kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("services"), orphan.DeepCopy(), "ns"); err != nil {
					t.Fatal(err)
				}
				now.SetTime(now.Now().Add(time.Second))
			}
			if patches != tc.patches || gets != patches {
				t.Errorf("%d adoptions with %d reads in five minutes, want %d of each", patches, gets, tc.patches)
			}
			if err == nil || !strings.Contains(err.Error(), tc.message) || !NotAsked(err) {
				t.Errorf("got %v, want %s", err, tc.message)
			}
			owner.Generation++
			if err := adopt(); NotAsked(err) {
				t.Errorf("another generation of the owner: %v", err)
			}
		})
	}
}
