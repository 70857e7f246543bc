// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// asWritten is a manifest with the values that are most often written in another way, or left out, when they are shown.
const asWritten = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: default}
spec:
  suspend: false
  failurePolicy: {maxRestarts: 0}
  coordinator: {replicatedJob: w, jobIndex: 0, podIndex: 0}
  network: {enableDNSHostnames: false, publishNotReadyAddresses: false}
  ttlSecondsAfterFinished: 0
  replicatedJobs:
  - name: w
    replicas: 1
    template:
      spec:
        completionMode: Indexed
        completions: 1
        parallelism: 1
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers: [{name: c, image: busybox, env: [{name: EMPTY, value: ""}], resources: {requests: {cpu: 1000m, memory: 1024Mi}}}]
`

// leaves puts the values of a document into a map by their paths.
func leaves(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, of := range v {
			leaves(strings.TrimPrefix(path+"."+key, "."), of, into)
		}
	case []any:
		for i, of := range v {
			leaves(fmt.Sprintf("%s[%d]", path, i), of, into)
		}
	default:
		into[path] = fmt.Sprintf("%#v", v)
	}
}

// TestValuesComeBackAsWritten: Terraform compares the answer with the configuration, leaf by leaf, and fails at each difference. What differs
// is in the types of Kubernetes that a JobSet embeds, which clients share with us, and is on the page for GitOps.
func TestValuesComeBackAsWritten(t *testing.T) {
	body, err := yaml.YAMLToJSON([]byte(asWritten))
	if err != nil {
		t.Fatal(err)
	}
	s := newInProcess(t, resource{jobsetsPath, "train"})
	w, refused := s.send(t, http.MethodPost, s.path, mediaJSON, body)
	if refused != nil {
		t.Fatal(refused.Message)
	}
	var wrote, answered map[string]any
	if err := json.Unmarshal(body, &wrote); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answered); err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	leaves("", wrote["spec"], want)
	leaves("", answered["spec"], got)
	var differ []string
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			differ = append(differ, path+": "+want[path]+" became "+got[path])
		}
	}
	const container = "replicatedJobs[0].template.spec.template.spec.containers[0]."
	if diff := cmp.Diff([]string{
		container + `env[0].value: "" became `, container + `resources.requests.cpu: "1000m" became "1"`, container + `resources.requests.memory: "1024Mi" became "1Gi"`,
	}, differ); diff != "" {
		t.Errorf("values that are shown in another way (-want +got):\n%s", diff)
	}
	page, err := os.ReadFile("../../docs/operations/gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"computed_fields", `value: ""`, "1000m", "1024Mi"} {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/operations/gitops.md does not have %s", text)
		}
	}
}
