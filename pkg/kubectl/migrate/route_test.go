// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestMovedGroupIsServed: the APIService of a group is available before jobset-apiserver has looked at its objects. A migration that ended
// then let its user read the answer 503.
func TestMovedGroupIsServed(t *testing.T) {
	s := subjectOf(t, "JobSet")
	for name, c := range map[string]struct {
		served time.Duration
		err    string
	}{
		"at once":  {},
		"later":    {served: 3 * time.Second},
		"too late": {served: time.Hour, err: "jobset-apiserver does not serve jobset.x-k8s.io/v1alpha2: the group was not looked at"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{s.resource: "JobSetList"})
				began := time.Now()
				client.PrependReactor("list", "jobsets", func(clienttesting.Action) (bool, runtime.Object, error) {
					return time.Since(began) < c.served, nil, apierrors.NewServiceUnavailable("the group was not looked at")
				})
				message := ""
				if err := (&router{client: client}).awaitServed(t.Context(), s); err != nil {
					message = err.Error()
				}
				want := min(c.served, routeTimeout)
				if took := time.Since(began); message != c.err || took < want || took > want+routePoll {
					t.Errorf("ended after %s with %q, want %s and %q", took, message, want, c.err)
				}
			})
		})
	}
}
