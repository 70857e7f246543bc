// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// root is the root of the repository.
var root = filepath.Join("..", "..")

func TestMain(m *testing.M) {
	// Helm logs each value that a chart lacks.
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	m.Run()
}

// object is a rendered object. objects are keyed by "Kind/name", or "Kind/namespace/name" outside of jobset-system.
type (
	object  = map[string]any
	objects = map[string]object
)

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(filepath.Join(root, chartDir))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// release is how a test renders the chart. Unless the values say which registry has the images, the nodes have them.
type release struct {
	values string
	// annotations are further ones of the chart, as make release and make publish write them.
	annotations map[string]string
	namespace   string
	// cluster answers lookups; nil is helm template, where they find nothing.
	cluster *rest.Config
}

// texts renders the templates as Helm does for an installation.
func (r release) texts(t *testing.T) (map[string]string, error) {
	t.Helper()
	c := loadChart(t)
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(r.values), &values); err != nil {
		t.Fatal(err)
	}
	image, _ := values["image"].(map[string]any)
	if _, known := image["local"]; !known && image["registry"] == nil && r.annotations == nil {
		if image == nil {
			image = map[string]any{}
			values["image"] = image
		}
		image["local"] = true
	}
	maps.Copy(c.Metadata.Annotations, r.annotations)
	if r.namespace == "" {
		r.namespace = "default"
	}
	options := common.ReleaseOptions{Name: "jobset", Namespace: r.namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	if r.cluster != nil {
		return engine.RenderWithClient(c, all, r.cluster)
	}
	return engine.Render(c, all)
}

// objects renders the chart, which must succeed.
func (r release) objects(t *testing.T) objects {
	t.Helper()
	texts, err := r.texts(t)
	if err != nil {
		t.Fatal(err)
	}
	all := objects{}
	for name, text := range texts {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		parsed, err := parse(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		for key, o := range parsed {
			if _, twice := all[key]; twice {
				t.Errorf("%s is rendered twice", key)
			}
			all[key] = o
		}
	}
	return all
}

// parse returns the objects of a stream of YAML documents. A key that a document has twice is an error.
func parse(text string) (objects, error) {
	all := objects{}
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		var o object
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		key := keyOf(o)
		if _, twice := all[key]; twice {
			return nil, fmt.Errorf("%s is rendered twice", key)
		}
		all[key] = o
	}
	return all, nil
}

func keyOf(o object) string {
	metadata, _ := o["metadata"].(object)
	key := fmt.Sprint(o["kind"], "/", metadata["name"])
	if namespace := metadata["namespace"]; namespace != nil && namespace != "jobset-system" {
		key = fmt.Sprint(o["kind"], "/", namespace, "/", metadata["name"])
	}
	return key
}

// at returns what a rendered object has at a path such as spec.template.spec.containers.0.args, as YAML in one line; or "none".
func at(o object, path string) string {
	var value any = o
	for _, step := range strings.Split(path, ".") {
		// A dot of a key is written as a bar.
		step = strings.ReplaceAll(step, "|", ".")
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(v) {
				return "none"
			}
			value = v[i]
		default:
			return "none"
		}
	}
	if value == nil {
		return "none"
	}
	if s, ok := value.(string); ok {
		return s
	}
	content, err := yaml.Marshal(value)
	if err != nil {
		return err.Error()
	}
	content, err = yaml.YAMLToJSON(content)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
