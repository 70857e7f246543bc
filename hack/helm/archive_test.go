// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var renderedArchive = map[string]valuesTest{
	"no archive": {wants: []want{
		present("APIService/v1alpha1.archive.jobset-apiserver.io"), present("ClusterRole/jobset-archive-view"), present("ClusterRole/jobset-archive-admin"),
		{server, container + "args.7", "none"}, {server, pod + "volumes.1", "none"},
	}},
	"archive in a file": {values: "archive: {database: sqlite, retention: 30d, retentionBytes: 5Gi, allowedEnv: [A, 'NCCL_*'], omittedKeys: ['annotation:a/b', 'env:C']}", wants: []want{
		{server, container + "args.7", "--archive-database=sqlite"}, {server, container + "args.8", "--archive-retention=30d"},
		{server, container + "args.9", "--archive-retention-bytes=5Gi"}, {server, container + "args.10", "--archive-allowed-env=A,NCCL_*"},
		{server, container + "args.11", "--archive-omitted-keys=annotation:a/b,env:C"}, {server, container + "args.12", "none"},
		{server, pod + "volumes.1", "none"}, {server, container + "env.3", "none"},
	}},
	"archive in a file on a claim that exists": {values: "{store: {embedded: {existingClaim: mine}}, archive: {database: sqlite, retentionBytes: 100Gi}}", wants: []want{
		{server, container + "args.9", "--archive-retention-bytes=100Gi"},
	}},
	"archive in PostgreSQL": {values: "archive: {database: 'postgresql://u@h:5432/d?sslmode=verify-full', passwordSecret: mine, retentionBytes: '0'}", wants: []want{
		{server, container + "args.7", "--archive-database=$(ARCHIVE_DATABASE)"}, {server, container + "args.8", "--archive-database-password-file=/etc/jobset-apiserver/archive/password"},
		{server, container + "args.10", "--archive-retention-bytes=0"}, {server, container + "env.3.value", "postgresql://u@h:5432/d?sslmode=verify-full"},
		{server, pod + "volumes.1", `{"name":"archive","secret":{"defaultMode":288,"optional":true,"secretName":"mine"}}`},
		{server, container + "volumeMounts.2.mountPath", "/etc/jobset-apiserver/archive"},
	}},
	"archive in PostgreSQL without a password": {values: "archive: {database: 'postgres://u@h/d', passwordSecret: ''}", wants: []want{
		{server, container + "args.8", "--archive-retention=365d"}, {server, pod + "volumes.1", "none"}, {server, container + "volumeMounts.2", "none"},
	}},
}

// TestArchiveValues checks what the values of the archive of runs change.
func TestArchiveValues(t *testing.T) { checkValues(t, renderedArchive) }

// databaseExample is the address in docs/archive.md.
const databaseExample = "postgres://jobset@db.example.com:5432/jobset?sslmode=verify-full&sslrootcert=/etc/jobset-apiserver/archive/ca.crt"

// archiveExample returns the block of docs/archive.md that begins with a line, without the indentation of the list that it is in.
func archiveExample(t *testing.T, first string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "archive.md"))
	if err != nil {
		t.Fatal(err)
	}
	const indent = "\n       "
	_, block, found := strings.Cut(string(content), "\n"+indent+first)
	if !found {
		t.Fatalf("docs/archive.md has no block that begins with %q", first)
	}
	block, _, _ = strings.Cut(block, "\n\n")
	return strings.ReplaceAll(first+block, indent, "\n") + "\n"
}

// TestArchiveExamples checks that the patch and the values of docs/archive.md set the address of the database.
func TestArchiveExamples(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	artifacts, err := filepath.Abs(filepath.Join(root, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	if artifacts, err = filepath.Rel(dir, artifacts); err != nil {
		t.Fatal(err)
	}
	for name, workload := range map[string]string{"embedded": server, "external-etcd": replicated} {
		var kustomization object
		text := strings.ReplaceAll(archiveExample(t, "components:"), "../artifacts", artifacts)
		if err := yaml.Unmarshal([]byte(text), &kustomization); err != nil {
			t.Fatal(err)
		}
		kustomization["resources"] = []string{filepath.Join(artifacts, "overlays", name)}
		content, err := yaml.Marshal(kustomization)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := databaseOf(overlay{}.run(t, dir)[workload]); got != databaseExample {
			t.Errorf("%s: the address of the database is %q, want %q", name, got, databaseExample)
		}
	}
	values := archiveExample(t, "archive:")
	if got := databaseOf(release{values: values}.objects(t)[server]); got != databaseExample {
		t.Errorf("the address of the database in the chart is %q, want %q", got, databaseExample)
	}
}

// databaseOf returns the address of the database that a workload has.
func databaseOf(workload object) string {
	containers, _ := value(workload, "spec", "template", "spec", "containers").([]any)
	for _, c := range containers {
		variables, _ := value(c, "env").([]any)
		for _, variable := range variables {
			if value(variable, "name") == "ARCHIVE_DATABASE" {
				address, _ := value(variable, "value").(string)
				return address
			}
		}
	}
	return ""
}
