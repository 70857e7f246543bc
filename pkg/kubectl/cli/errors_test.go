// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestExplain(t *testing.T) {
	sets, widgets := schema.GroupResource{Group: "jobset.x-k8s.io", Resource: "jobsets"}, schema.GroupResource{Group: "example.com", Resource: "widgets"}
	answer := func(code int, of schema.GroupResource) error {
		return fmt.Errorf("reading: %w", apierrors.NewGenericServerResponse(code, "get", of, "a", "", 0, true))
	}
	const notFound, away = "reading: the server could not find the requested resource", "reading: the server is currently unable to handle the request"
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"any other error":               {errors.New("a reason "), "a reason"},
		"an object that does not exist": {apierrors.NewNotFound(sets, "a"), `jobsets.jobset.x-k8s.io "a" not found`},
		"a kind that is not served": {
			answer(http.StatusNotFound, sets),
			notFound + " (get jobsets.jobset.x-k8s.io a): the cluster does not serve jobset.x-k8s.io/v1alpha2; ask `kubectl get apiservice v1alpha2.jobset.x-k8s.io`",
		},
		"another kind that is not served": {
			answer(http.StatusNotFound, widgets),
			notFound + " (get widgets.example.com a): the cluster does not serve example.com/v1; ask `kubectl get apiservice v1.example.com`",
		},
		"a server that is away": {
			answer(http.StatusServiceUnavailable, widgets), away + " (get widgets.example.com a): ask `kubectl get apiservice v1.example.com`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Explain(tc.err, JobSet, widget)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}
