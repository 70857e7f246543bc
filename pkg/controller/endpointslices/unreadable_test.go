// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// TestUnreadableSetKeepsItsAddresses: a Service that an earlier process took for a set that cannot be read stays taken, and follows the
// pods. A Service that the cluster has stays with the cluster.
func TestUnreadableSetKeepsItsAddresses(t *testing.T) {
	for name, tc := range map[string]struct{ taken, metadata bool }{
		"taken":                               {taken: true, metadata: true},
		"taken, and without metadata":         {taken: true},
		"of the cluster":                      {metadata: true},
		"of the cluster and without metadata": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := newJobSet("js", "controller", 1, func(js *jobsetv1alpha2.JobSet) { js.Spec = jobsetv1alpha2.JobSetSpec{} })
				if !tc.metadata {
					bad.UID, bad.Annotations = "", map[string]string{}
				}
				bad.Annotations[unreadable.Annotation] = "its bytes are damaged"
				service := newService("js")
				if tc.taken {
					taken(service)
				}
				r := newRig(t, nil, one(bad), service, podOf("js", 0, true))
				r.pass(time.Minute)
				if r.selects("js") == tc.taken {
					t.Errorf("the Service was switched: %q", r.writes())
				}
				if !tc.taken {
					if got := r.writes(); len(got) > 0 {
						t.Errorf("writes %q", got)
					}
					return
				}
				r.change("js-w-0-0-abcde", func(p *corev1.Pod) { start(7)(p) })
				r.pass(time.Minute)
				if got := r.listed()["js-w-0"]; got != "10.0.0.7" && r.listed()["js-w-0-0"] != "10.0.0.7" {
					t.Errorf("addresses %v", r.listed())
				}
				if _, err := r.sets.JobsetV1alpha2().JobSets("ns").Update(t.Context(), newJobSet("js", "cluster", 1), metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				r.pass(2 * time.Minute)
				if !r.selects("js") {
					t.Error("the Service is not given back when the set can be read and asks for that")
				}
			})
		})
	}
}
