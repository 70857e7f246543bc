// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
)

func TestNamespaceIsRemovedWhateverHappens(t *testing.T) {
	failure := errors.New("the work failed")
	for name, end := range map[string]func(cancel context.CancelFunc) error{
		"the work is done":        func(context.CancelFunc) error { return nil },
		"the work failed":         func(context.CancelFunc) error { return failure },
		"the work is interrupted": func(cancel context.CancelFunc) error { cancel(); return failure },
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			r := &runner{Env: &Env{Cluster: &cluster.Cluster{Kube: client}, Timeout: time.Minute}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var want error
			err := r.inSpace(ctx, unwatched, false, func(ctx context.Context, _ *space) error {
				labeled, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: NamespaceKey})
				if err != nil || len(labeled.Items) != 1 {
					t.Errorf("%d namespaces with the label (%v)", len(labeled.Items), err)
				}
				want = end(cancel)
				return want
			})
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("error %v, want %v", err, want)
			}
			left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) != 0 {
				t.Errorf("%d namespaces are left (%v)", len(left.Items), err)
			}
		})
	}
}
