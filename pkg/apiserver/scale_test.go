// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestScaleOfASetWithoutOne: programs that go from a pod to its owners take 404 of a scale for "cannot be scaled", and give the pods up at
// any other error. Writes keep the answer that names the field.
func TestScaleOfASetWithoutOne(t *testing.T) {
	const worker = `{"name":"NAME","template":{"spec":{SPEC"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}`
	const elastic = `"completionMode":"Indexed","parallelism":2,"completions":2,`
	set := func(jobs ...string) string {
		return `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train","namespace":"default"},"spec":{"replicatedJobs":[` + strings.Join(jobs, ",") + `]}}`
	}
	job := func(name, spec string) string { return strings.NewReplacer("NAME", name, "SPEC", spec).Replace(worker) }
	const none, off = "spec.replicatedJobs: Forbidden: cannot be scaled because none is elastic", "spec.replicatedJobs: Forbidden: cannot be scaled while the feature gate ElasticJobSet is off"
	for name, tc := range map[string]struct {
		gate, set   string
		read, write int
		// message is in both answers.
		message string
	}{
		"none is elastic":     {"ElasticJobSet", set(job("a", "")), http.StatusNotFound, http.StatusUnprocessableEntity, none},
		"the gate is off":     {"ElasticJobSet=false", set(job("a", elastic)), http.StatusNotFound, http.StatusUnprocessableEntity, off},
		"several are elastic": {"ElasticJobSet", set(job("a", elastic), job("b", elastic)), http.StatusUnprocessableEntity, http.StatusUnprocessableEntity, "must name one of the elastic replicatedJobs: a, b"},
		"one is elastic":      {"ElasticJobSet", set(job("a", elastic), job("b", "")), http.StatusOK, http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInProcess(t, resource{jobsetsPath, "train"}, tc.gate)
			s.hold(t, []byte(tc.set))
			check := func(verb string, code, want int, message string) {
				t.Helper()
				if code != want || !strings.Contains(message, tc.message) {
					t.Errorf("%s: %d %s, want %d %s", verb, code, message, want, tc.message)
				}
			}
			read, refused := s.send(t, http.MethodGet, s.object()+"/scale", mediaJSON, nil)
			if refused != nil {
				check("GET", read.Code, tc.read, refused.Message)
			} else {
				check("GET", read.Code, tc.read, "")
			}
			write, refused := s.send(t, http.MethodPatch, s.object()+"/scale", "application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))
			if refused != nil {
				check("PATCH", write.Code, tc.write, refused.Message)
			} else {
				check("PATCH", write.Code, tc.write, "")
			}
		})
	}
}
