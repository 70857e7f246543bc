// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/install"
	v1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/validation"
)

// valid is the manifest that tests change: four groups of four pods.
const valid = `
metadata: {name: sample, namespace: team}
spec:
  replicas: 4
  leaderWorkerTemplate:
    size: 4
    workerTemplate: {spec: {containers: [{name: main, image: busybox}]}}
`

const (
	sizePath    = "spec.leaderWorkerTemplate.size"
	subSizePath = "spec.leaderWorkerTemplate.SubGroupPolicy.subGroupSize"
	maxPath     = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"
	surgePath   = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"
	annotation  = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
)

// merged reads the valid manifest with a JSON merge patch in YAML, and fills in defaults.
func merged(t *testing.T, patch string) *leaderworkerset.LeaderWorkerSet {
	t.Helper()
	var base, change map[string]any
	if err := yaml.Unmarshal([]byte(valid), &base); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(patch), &change); err != nil {
		t.Fatal(err)
	}
	merge(base, change)
	text, err := yaml.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	versioned := &v1.LeaderWorkerSet{}
	if err := yaml.UnmarshalStrict(text, versioned); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.Default(versioned)
	hub := &leaderworkerset.LeaderWorkerSet{}
	if err := scheme.Convert(versioned, hub, nil); err != nil {
		t.Fatal(err)
	}
	return hub
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(old, inner)
		default:
			into[key] = value
		}
	}
}

// rolling is a patch of the parameters of a rolling update.
func rolling(parameters string) string {
	return "spec: {rolloutStrategy: {rollingUpdateConfiguration: {" + parameters + "}}}"
}

func template(fields string) string { return "spec: {leaderWorkerTemplate: {" + fields + "}}" }

// kinds returns the type and the path of each error.
func kinds(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, string(err.Type)+" "+err.Field)
	}
	return out
}

func invalid(paths ...string) []string {
	var out []string
	for _, path := range paths {
		out = append(out, string(field.ErrorTypeInvalid)+" "+path)
	}
	return out
}

func unsupported(path string) []string {
	return []string{string(field.ErrorTypeNotSupported) + " " + path}
}

func required(path string) []string { return []string{string(field.ErrorTypeRequired) + " " + path} }

// checkBoth checks a spec on creation, and on an update that brings the change in.
func checkBoth(t *testing.T, patch string, want []string) {
	t.Helper()
	set := merged(t, patch)
	if diff := cmp.Diff(want, kinds(validation.ValidateLeaderWorkerSetCreate(set))); diff != "" {
		t.Errorf("create (-want +got):\n%s", diff)
	}
	if set.Spec.LeaderWorkerTemplate.SubGroupPolicy == nil { // a policy cannot be added
		if diff := cmp.Diff(want, kinds(validation.ValidateLeaderWorkerSetUpdate(set, merged(t, "")))); diff != "" {
			t.Errorf("update (-want +got):\n%s", diff)
		}
	}
	if errs := validation.ValidateLeaderWorkerSetUpdate(set, set.DeepCopy()); len(errs) > 0 {
		t.Errorf("what is stored already is refused: %v", errs)
	}
}
