// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const (
	embeddedOverlay = "artifacts/overlays/embedded"
	externalOverlay = "artifacts/overlays/external-etcd"
)

// manifests are what the tests look at in an overlay.
type manifests struct {
	// selectors are the selectors of everything that selects pods of the server, by kind.
	selectors map[string]labels.Selector
	// server is the template of the server's pods.
	server corev1.PodTemplateSpec
	// templates are the templates of all pods.
	templates []corev1.PodTemplateSpec
}

func readManifests(t *testing.T, dir string) manifests {
	t.Helper()
	m := manifests{selectors: map[string]labels.Selector{}}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(plane.Kustomize(t, dir)), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return m
		} else if err != nil {
			t.Fatal(err)
		}
		if object.GetKind() != "" {
			m.add(t, &object)
		}
	}
}

func (m *manifests) add(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	var selector *metav1.LabelSelector
	var template *corev1.PodTemplateSpec
	switch object.GetKind() {
	case "Deployment":
		deployment := convert[appsv1.Deployment](t, object)
		selector, template = deployment.Spec.Selector, &deployment.Spec.Template
	case "StatefulSet":
		set := convert[appsv1.StatefulSet](t, object)
		selector, template = set.Spec.Selector, &set.Spec.Template
	case "PodDisruptionBudget":
		selector = convert[policyv1.PodDisruptionBudget](t, object).Spec.Selector
	case "Service":
		selector = &metav1.LabelSelector{MatchLabels: convert[corev1.Service](t, object).Spec.Selector}
	default:
		return
	}
	if template != nil {
		m.templates = append(m.templates, *template)
	}
	if object.GetName() != "jobset-apiserver" {
		return
	}
	if template != nil {
		m.server = *template
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	m.selectors[object.GetKind()] = parsed
}

func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

// TestOverlaysSelectTheirOwnPods makes sure that nothing of an overlay selects pods of the other one, which have another
// store.
func TestOverlaysSelectTheirOwnPods(t *testing.T) {
	overlays := []manifests{readManifests(t, embeddedOverlay), readManifests(t, externalOverlay)}
	for i, own := range overlays {
		if len(own.selectors) != 3 {
			t.Errorf("selectors are %v", own.selectors)
		}
		other := overlays[1-i].server.Labels
		for kind, selector := range own.selectors {
			if !selector.Matches(labels.Set(own.server.Labels)) || selector.Matches(labels.Set(other)) {
				t.Errorf("selector %s of the %s: own pods have %v, others %v", selector, kind, own.server.Labels, other)
			}
		}
	}
}

// TestOverlaysKeepTheStorage applies the two overlays over each other: what the first one recorded stays.
func TestOverlaysKeepTheStorage(t *testing.T) {
	apply := func(overlay string) (string, error) {
		return plane.Kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", overlay+"/storage.yaml")
	}
	for range 2 {
		if out, err := apply(embeddedOverlay); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := apply(externalOverlay); err == nil || !strings.Contains(out, "immutable") {
		t.Errorf("the record of the storage was replaced: %v: %s", err, out)
	}
	for _, overlay := range []string{embeddedOverlay, externalOverlay} {
		container := readManifests(t, overlay).server.Spec.Containers[0]
		if !strings.Contains(strings.Join(container.Args, " "), "--storage=$(STORAGE)") {
			t.Errorf("%s: flags are %q", overlay, container.Args)
		}
	}
}

// TestMemoryLimits wants Go to know the limit of each container, with room for what Go does not count.
func TestMemoryLimits(t *testing.T) {
	tier.OnRequest(t, "measures memory of the whole process")
	for _, overlay := range []string{embeddedOverlay, externalOverlay} {
		for _, template := range readManifests(t, overlay).templates {
			for _, container := range template.Spec.Containers {
				limit, known := container.Resources.Limits.Memory(), goLimit(t, container)
				if low, high := limit.Value()/100*85, limit.Value()/100*91; known < low || known > high {
					t.Errorf("%s: GOMEMLIMIT of %s is %d bytes, not 85%% to 91%% of %s", overlay, container.Name, known, limit)
				}
			}
		}
	}
}

func goLimit(t *testing.T, container corev1.Container) int64 {
	t.Helper()
	for _, env := range container.Env {
		if env.Name == "GOMEMLIMIT" {
			quantity, err := resource.ParseQuantity(strings.TrimSuffix(env.Value, "B"))
			if err != nil {
				t.Fatal(err)
			}
			return quantity.Value()
		}
	}
	return 0
}
