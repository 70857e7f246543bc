// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// filesExample returns the Secret and the values in the section of docs/helm.md about tracing, audit and encryption. Tests of
// pkg/apiserver/options check that the server accepts the flags and the files.
func filesExample(t *testing.T) (secret object, values string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "helm.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n## Tracing, audit and encryption\n")
	blocks := strings.Split(section, "\n```")
	if len(blocks) < 4 {
		t.Fatal("docs/helm.md must have a Secret and values")
	}
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(blocks[1], "yaml\n")), &secret); err != nil {
		t.Fatal(err)
	}
	return secret, strings.TrimPrefix(blocks[3], "yaml\n")
}

// rendering is what the test reads of a container and its pod.
type rendering struct {
	Containers []struct {
		Args         []string
		Env          []struct{ Name, Value string }
		VolumeMounts []struct{ Name, MountPath string }
	}
	Volumes []struct {
		Name   string
		Secret struct{ SecretName string }
	}
}

// TestFilesOfExample renders the values of the example, and checks that each flag with a file finds it in the Secret.
func TestFilesOfExample(t *testing.T) {
	secret, values := filesExample(t)
	metadata, files := secret["metadata"].(object), secret["stringData"].(object)
	for _, kind := range []string{"", "\nstore: {type: external}"} {
		all := release{values: values + kind}.objects(t)
		workload := all[server]
		if kind != "" {
			workload = all[replicated]
		}
		var pod rendering
		text, err := json.Marshal(workload["spec"].(object)["template"].(object)["spec"])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &pod); err != nil {
			t.Fatal(err)
		}
		dir, found := mountOf(pod, metadata["name"].(string)), 0
		for _, arg := range pod.Containers[0].Args {
			_, file, _ := strings.Cut(arg, "=")
			if path.Dir(file) != dir {
				continue
			}
			if found++; files[path.Base(file)] == nil {
				t.Errorf("%s: the Secret has no such file", arg)
			}
		}
		if found != len(files) || dir == "" || metadata["namespace"] != "jobset-system" {
			t.Errorf("%d flags name files in %q, and the Secret in %s has %d", found, dir, metadata["namespace"], len(files))
		}
		if env := pod.Containers[0].Env; len(env) == 0 || env[len(env)-1].Name != "OTEL_RESOURCE_ATTRIBUTES" {
			t.Errorf("the container has the variables %v", env)
		}
	}
}

// mountOf returns where the container has the files of a Secret.
func mountOf(pod rendering, secret string) string {
	for _, volume := range pod.Volumes {
		for _, mount := range pod.Containers[0].VolumeMounts {
			if volume.Secret.SecretName == secret && mount.Name == volume.Name {
				return mount.MountPath
			}
		}
	}
	return ""
}
