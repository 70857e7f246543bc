// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestDeletedSetsAreForgotten deletes a set and what belongs to it, as the garbage collector does in any order, while another set stays.
func TestDeletedSetsAreForgotten(t *testing.T) {
	for name, order := range map[string][]string{
		"the Service last": {"set", "pods", "slices", "service"},
		"the slices last":  {"set", "service", "pods", "slices"},
		"the pods last":    {"set", "service", "slices", "pods"},
		"the set last":     {"pods", "slices", "service", "set"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, append(one(newJobSet("js", "controller", 1)), newJobSet("other", "controller", 1)),
					newService("js"), podOf("js", 0, true), newService("other"), podOf("other", 0, true))
				for _, what := range order {
					r.remove("js", what)
					r.pass(2 * time.Second)
				}
				r.pass(2 * leavingTimeout)
				key := cache.NewObjectName("ns", "js")
				view := r.c.demand.Current()
				if view == nil {
					t.Fatal("nothing is watched for the other set")
				}
				if view.paces.all[key] != nil || view.paces.all[cache.NewObjectName("ns", "other")] == nil {
					t.Errorf("paces are %v", view.paces.all)
				}
				if m := r.c.memory; len(m.versions[key]) > 0 || m.outcomes[key] != (outcome{}) || !m.leaving.Noted(key).IsZero() {
					t.Errorf("kept are %v, %v, %v", m.versions[key], m.outcomes[key], m.leaving.Noted(key))
				}
			})
		})
	}
}

// remove deletes a set or what belongs to it.
func (r *rig) remove(set, what string) {
	r.Helper()
	var err error
	ofSet := metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + set}
	switch what {
	case "set":
		err = r.sets.JobsetV1alpha2().JobSets("ns").Delete(r.Context(), set, metav1.DeleteOptions{})
	case "service":
		err = r.kube.CoreV1().Services("ns").Delete(r.Context(), set, metav1.DeleteOptions{})
	case "pods":
		err = r.kube.CoreV1().Pods("ns").Delete(r.Context(), podOf(set, 0, true).Name, metav1.DeleteOptions{})
	case "slices":
		list, listErr := r.kube.DiscoveryV1().EndpointSlices("ns").List(r.Context(), ofSet)
		err = listErr
		for i := range list.Items {
			err = r.kube.DiscoveryV1().EndpointSlices("ns").Delete(r.Context(), list.Items[i].Name, metav1.DeleteOptions{})
		}
	}
	if err != nil {
		r.Fatal(err)
	}
}
