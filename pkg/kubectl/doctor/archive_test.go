// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

// TestAPIServiceOfArchive: an installation without it is well, and one with it is checked like the others.
func TestAPIServiceOfArchive(t *testing.T) {
	const three = "v1alpha2.jobset.x-k8s.io, v1alpha1.batch.jobset-apiserver.io"
	elsewhere := service(cli.Run, "True", "Passed", "")
	_ = unstructured.SetNestedField(elsewhere.Object, "elsewhere", "spec", "service", "name")
	for name, tc := range map[string]struct {
		archive *unstructured.Unstructured
		err     error
		check   string
		status  Status
		message string
	}{
		"absent": {nil, nil, "registered", OK, three + " and v1.leaderworkerset.x-k8s.io are registered"},
		"may not be read": {
			service(cli.Run, "True", "Passed", ""), apierrors.NewForbidden(schema.GroupResource{Resource: "apiservices"}, outage.Name(cli.Run), nil), "registered", OK,
			three + " and v1.leaderworkerset.x-k8s.io are registered",
		},
		"registered": {
			service(cli.Run, "True", "Passed", ""), nil, "registered", OK,
			three + ", v1.leaderworkerset.x-k8s.io and v1alpha1.archive.jobset-apiserver.io are registered",
		},
		"reached": {
			service(cli.Run, "True", "Passed", ""), nil, "available", OK,
			"kube-apiserver reaches the server of " + three + ", v1.leaderworkerset.x-k8s.io and v1alpha1.archive.jobset-apiserver.io",
		},
		"not reached": {
			service(cli.Run, "False", "FailedDiscoveryCheck", "404"), nil, "available", Fail,
			"v1alpha1.archive.jobset-apiserver.io: Available is False (FailedDiscoveryCheck): 404",
		},
		"of no Service": {elsewhere, nil, "service", Fail, "APIService v1alpha1.archive.jobset-apiserver.io points to Service jobset-system/elsewhere, but JobSets are served by Service jobset-system/jobset-apiserver"},
	} {
		t.Run(name, func(t *testing.T) {
			i := healthy(t)
			if tc.archive != nil {
				i.registered = append(i.registered, tc.archive)
			}
			c := i.built(t)
			c.refusedNames = map[string]error{outage.Name(cli.Run): tc.err}
			f := c.find(t, tc.check)
			if diff := cmp.Diff([]string{string(tc.status), tc.message}, []string{string(f.status), f.message}); diff != "" {
				t.Errorf("status and message (-want +got):\n%s", diff)
			}
		})
	}
}
