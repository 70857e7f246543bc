// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// binaries is the directory of the control plane's programs.
func binaries(t *testing.T) string {
	t.Helper()
	dir, err := localcluster.TestBinaries(shared.Root)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeAuditPolicy has every write to JobSets recorded with its request.
func writeAuditPolicy() (string, error) {
	dir, err := os.MkdirTemp("", "jobset-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "audit-policy.yaml")
	return path, os.WriteFile(path, []byte(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
  resources: [{group: jobset.x-k8s.io}]
- level: None
`), 0o600)
}

// Outcomes that the simulated nodes give to pods; docs/local-cluster.md has them all.
const (
	runShort = `jobset-apiserver.io/kwok-run-seconds: "1"`
	runOn    = `jobset-apiserver.io/kwok-outcome: "running"`
	fail     = `jobset-apiserver.io/kwok-outcome: "failed"`
)

// manifest is a JobSet of two Jobs of one pod each, whose pods carry one annotation. Lines of extra go under spec.
func manifest(name, podAnnotation string, extra ...string) string {
	spec := ""
	for _, line := range extra {
		spec += "  " + strings.ReplaceAll(line, "\n", "\n  ") + "\n"
	}
	return fmt.Sprintf(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
spec:
%s  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 1
        completions: 1
        backoffLimit: 0
        template:
          metadata:
            annotations:
              %s
          spec:
            containers:
            - name: main
              image: registry.example/trainer:v1
`, name, spec, podAnnotation)
}
