// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const someObjects = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: other}
---
apiVersion: v1
kind: List
items:
- apiVersion: jobset.x-k8s.io/v1alpha2
  kind: JobSet
  metadata: {name: eval, namespace: elsewhere}
`

// widget stands for a second kind.
var widget = cli.Kind{Title: "Widget", Names: []string{"widget", "widgets"}, GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}}

func TestReadObjects(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"sets.yaml": someObjects, "kustomization.yaml": "resources: [sets.yaml]\nnamePrefix: my-\n", "configmap/other.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
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
		kinds []cli.For[Previewer]
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
			files: resource.FilenameOptions{Filenames: []string{"-"}}, stdin: someObjects,
			want: answer{Names: []string{"ns/train", "elsewhere/eval"}, Others: 1},
		},
		"a kustomization": {
			files: resource.FilenameOptions{Kustomize: dir},
			want:  answer{Names: []string{"elsewhere/my-eval", "ns/my-train"}, Others: 1},
		},
		"two kinds": {
			kinds: []cli.For[Previewer]{jobSets[0], {Kind: widget}},
			files: resource.FilenameOptions{Filenames: []string{filepath.Join(dir, "sets.yaml")}},
			want:  answer{Names: []string{"ns/train", "ns/other", "elsewhere/eval"}},
		},
		"none of two kinds": {
			kinds: []cli.For[Previewer]{jobSets[0], {Kind: widget}},
			files: resource.FilenameOptions{Filenames: []string{"-"}}, stdin: "{apiVersion: v1, kind: Secret, metadata: {name: a}}",
			want: answer{Err: "--filename: holds no JobSet of the group jobset.x-k8s.io and no Widget of the group example.com, only 1 object of other kinds"},
		},
		"another namespace than the one asked for": {
			files: resource.FilenameOptions{Filenames: []string{"-"}}, stdin: someObjects, asked: true,
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
			if tc.kinds == nil {
				tc.kinds = jobSets
			}
			found, others, err := readObjects(tc.kinds, tc.files, strings.NewReader(tc.stdin), "ns", tc.asked)
			got := answer{Others: len(others)}
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

// widgetView is a preview of a widget.
type widgetView struct {
	Cogs int `json:"cogs"`
}

func (w widgetView) Lines(cli.Terminal) []string { return []string{cli.Count(w.Cogs, "cog")} }
func (w widgetView) Refused() bool               { return w.Cogs > 2 }
func (w widgetView) Changed() bool               { return true }
func (w widgetView) Objects() (live, next *unstructured.Unstructured) {
	return nil, nil
}

func TestPreviewOfAnotherKind(t *testing.T) {
	kinds := []cli.For[Previewer]{jobSets[0], {Kind: widget, Do: func(_ context.Context, _ *Session, o *unstructured.Unstructured) (View, error) {
		return widgetView{Cogs: len(o.GetName())}, nil
	}}}
	objects, _, err := readObjects(kinds, resource.FilenameOptions{Filenames: []string{"-"}}, strings.NewReader(someObjects), "ns", false)
	if err != nil {
		t.Fatal(err)
	}
	report, err := preview(t.Context(), &Session{cluster: &answers{}}, objects[1:2])
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	got := append(render(report, nil, cli.Terminal{}), string(data))
	if diff := cmp.Diff([]string{"5 cogs", `{"refused":true,"changed":true,"sets":[{"cogs":5}]}`}, got); diff != "" {
		t.Errorf("text and data (-want +got):\n%s", diff)
	}
}
