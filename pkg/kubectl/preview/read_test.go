// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/resource"
)

const manifest = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: v1
kind: List
items:
- apiVersion: jobset.x-k8s.io/v1alpha2
  kind: JobSet
  metadata: {name: eval, namespace: elsewhere}
`

func TestReadSets(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"sets.yaml": manifest, "kustomization.yaml": "resources: [sets.yaml]\nnamePrefix: my-\n", "configmap/other.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type answer struct {
		Names  []string
		Others int
		Err    string
	}
	for name, tc := range map[string]struct {
		files resource.FilenameOptions
		stdin string
		asked bool
		want  answer
	}{
		"a file": {
			files: resource.FilenameOptions{Filenames: []string{filepath.Join(dir, "sets.yaml")}},
			want:  answer{Names: []string{"ns/train", "elsewhere/eval"}, Others: 1},
		},
		"the standard input": {
			files: resource.FilenameOptions{Filenames: []string{"-"}}, stdin: manifest,
			want: answer{Names: []string{"ns/train", "elsewhere/eval"}, Others: 1},
		},
		"a kustomization": {
			files: resource.FilenameOptions{Kustomize: dir},
			want:  answer{Names: []string{"elsewhere/my-eval", "ns/my-train"}, Others: 1},
		},
		"another namespace than the one asked for": {
			files: resource.FilenameOptions{Filenames: []string{"-"}}, stdin: manifest, asked: true,
			want: answer{Err: `--namespace: must be "elsewhere", in which standard input has the JobSet eval, not "ns"`},
		},
		"no set": {
			files: resource.FilenameOptions{Filenames: []string{filepath.Join(dir, "configmap")}},
			want:  answer{Err: "--filename: holds no JobSet of the group jobset.x-k8s.io, only 1 object of other kinds"},
		},
		"a set of another group": {
			files: resource.FilenameOptions{Filenames: []string{"-"}}, stdin: "{apiVersion: example.com/v1, kind: JobSet, metadata: {name: a}}",
			want: answer{Err: "--filename: holds no JobSet of the group jobset.x-k8s.io, only 1 object of other kinds"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, others, err := readSets(tc.files, strings.NewReader(tc.stdin), "ns", tc.asked)
			got := answer{Others: others}
			for _, object := range found {
				got.Names = append(got.Names, object.GetNamespace()+"/"+object.GetName())
			}
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sets (-want +got):\n%s", diff)
			}
		})
	}
}
