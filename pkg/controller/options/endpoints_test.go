// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/leaderelection"
)

func TestHealthEndpoints(t *testing.T) {
	notReady := errors.New("waiting for caches to sync: jobs")
	o := &Options{ReadinessEndpoint: "/readyz", LivenessEndpoint: "/healthz"}
	handler := o.healthHandler(leaderelection.NewLeaderHealthzAdaptor(time.Second), func() error { return notReady })
	code := func(path string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	want := map[string]int{"/healthz": 200, "/readyz": 500, "/metrics": 404}
	for path := range want {
		if d := cmp.Diff(want[path], code(path)); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
	notReady = nil
	if d := cmp.Diff(200, code("/readyz")); d != "" {
		t.Errorf("/readyz with filled caches (-want +got):\n%s", d)
	}
}
