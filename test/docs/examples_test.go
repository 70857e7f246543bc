// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/features"
	jobsetregistry "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
)

// gateLine is the line with which the comment at the top of an example begins that needs feature gates.
var gateLine = regexp.MustCompile(`^Feature gates?: ([A-Z]\w+(?:, [A-Z]\w+)*), of jobset-apiserver and jobset-controller\. ` +
	`The local cluster has (?:it|them) after: CLUSTER_FEATURE_GATES=(\S+) make up\n`)

// example is a file of artifacts/examples.
type example struct {
	name string
	// gates are the feature gates that its first comment names.
	gates     []string
	manifests []string
}

func examples(t *testing.T) (found []example) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "artifacts/examples"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		content := read(t, name)
		comment, _ := runbook.Comment(t, file)
		e := example{name: name, manifests: strings.Split(content, "\n---\n")}
		if named := gateLine.FindStringSubmatch(comment); named != nil {
			e.gates = strings.Split(named[1], ", ")
			if want := strings.Join(e.gates, "=true,") + "=true"; named[2] != want {
				t.Errorf("%s: CLUSTER_FEATURE_GATES=%s must be %s", name, named[2], want)
			}
		}
		found = append(found, e)
		return nil
	})
	if err != nil || len(found) < 23 {
		t.Fatalf("found %d examples, want at least 23 (%v)", len(found), err)
	}
	return found
}

// TestExamplesNameTheirGates checks that an example names the feature gates without which it is refused or answered with a warning, at its
// top, and no others.
func TestExamplesNameTheirGates(t *testing.T) {
	gated := 0
	for _, e := range examples(t) {
		var on gates.Gates
		for _, name := range e.gates {
			if _, known := features.Specs()[featuregate.Feature(name)]; !known {
				t.Errorf("%s: there is no feature gate %s", e.name, name)
			}
			if field := reflect.ValueOf(&on).Elem().FieldByName(name); field.IsValid() {
				field.SetBool(true)
			}
		}
		needsGate := false
		for _, manifest := range e.manifests {
			if strings.Contains(manifest, "apiVersion: disaggregatedset.x-k8s.io/") {
				needsGate = true
				if !slices.Contains(e.gates, string(features.DisaggregatedSet)) {
					t.Errorf("%s must begin with: # Feature gate: %s, …", e.name, features.DisaggregatedSet)
				}
			}
			scheme, object, kind := decode(t, e.name, manifest)
			if object == nil || kind != "JobSet" {
				continue
			}
			off := create(jobsetregistry.NewStrategy(scheme, gates.Gates{}, time.Now), object.DeepCopyObject())
			needsGate = needsGate || len(off) > 0
			if problems := create(jobsetregistry.NewStrategy(scheme, on, time.Now), object); len(problems) > 0 {
				t.Errorf("%s: with the feature gates that its first comment names, %v: %q", e.name, e.gates, problems)
			}
		}
		if !needsGate && len(e.gates) > 0 {
			t.Errorf("%s names %v, and needs no feature gate", e.name, e.gates)
		}
		if needsGate {
			gated++
		}
	}
	if gated < 5 {
		t.Errorf("%d examples need a feature gate: want at least 5, or the search has stopped working", gated)
	}
}

// TestExamplesCanRunTogether checks that no two examples have an object of the same kind and name, or need a Service of the same name.
func TestExamplesCanRunTogether(t *testing.T) {
	needs := map[string]string{}
	services := 0
	for _, e := range examples(t) {
		for _, manifest := range e.manifests {
			var object metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
				t.Fatalf("%s: %v", e.name, err)
			}
			names := []string{object.Kind + " " + object.Name}
			if service := serviceName(t, object, manifest); service != "" {
				services++
				names = append(names, "Service "+service)
			}
			for _, name := range slices.Compact(names) {
				if other := needs[name]; other != "" && object.Name != "" {
					t.Errorf("%s and %s both need the %s", other, e.name, name)
				}
				needs[name] = e.name
			}
		}
	}
	if services < 15 {
		t.Errorf("found %d Services: want at least 15, or the search has stopped working", services)
	}
}

// TestExamplesAreOfServedGroups checks that `kubectl apply -R -f artifacts/examples` meets only objects that a cluster with jobset-apiserver
// takes: kinds of other projects, and files of kustomize, would make it fail.
func TestExamplesAreOfServedGroups(t *testing.T) {
	served := regexp.MustCompile(`^(v1|apps/v1|batch/v1|autoscaling/v2|rbac\.authorization\.k8s\.io/v1|admissionregistration\.k8s\.io/v1|` +
		`(jobset|leaderworkerset|disaggregatedset)\.x-k8s\.io/\w+|batch\.jobset-apiserver\.io/\w+)$`)
	for _, e := range examples(t) {
		for _, manifest := range e.manifests {
			var object metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
				t.Fatalf("%s: %v", e.name, err)
			}
			if !served.MatchString(object.APIVersion) {
				t.Errorf("%s: %s of %s is not served by every cluster; move it out of artifacts/examples", e.name, object.Kind, object.APIVersion)
			}
		}
	}
}

// serviceName returns the name of the object, if it is a Service, or of the headless Service of the pods of a set; "" if there is none.
// The Services of DisaggregatedSets have hashes in their names.
func serviceName(t *testing.T, object metav1.PartialObjectMetadata, manifest string) string {
	t.Helper()
	var set struct {
		Spec struct {
			Network struct {
				Subdomain          string
				EnableDNSHostnames *bool `json:"enableDNSHostnames"`
			}
		}
	}
	switch object.Kind {
	case "Service", "LeaderWorkerSet":
		return object.Name
	case "JobSet":
		if err := yaml.Unmarshal([]byte(manifest), &set); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", object.Name, err))
		}
		switch network := set.Spec.Network; {
		case network.EnableDNSHostnames != nil && !*network.EnableDNSHostnames:
			return ""
		case network.Subdomain != "":
			return network.Subdomain
		}
		return object.Name
	}
	return ""
}

// TestKwokStageOfTheExample checks that the stage for other clusters gives pods the status that the one of the local cluster gives them.
func TestKwokStageOfTheExample(t *testing.T) {
	type stage struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			ResourceRef, Next any
			Selector          metav1.LabelSelector
		}
	}
	var example, local stage
	if err := yaml.Unmarshal([]byte(read(t, "artifacts/kwok/pod-of-ready-group.yaml")), &example); err != nil {
		t.Fatal(err)
	}
	for manifest := range strings.SplitSeq(read(t, "hack/kwok/stages.yaml"), "\n---\n") {
		if strings.Contains(manifest, "name: pod-group-finish\n") {
			if err := yaml.Unmarshal([]byte(manifest+"\n"), &local); err != nil {
				t.Fatal(err)
			}
		}
	}
	diff := cmp.Diff([]any{local.Spec.ResourceRef, local.Spec.Next}, []any{example.Spec.ResourceRef, example.Spec.Next})
	if local.Name == "" || diff != "" {
		t.Errorf("the stage of the example (-local cluster +example):\n%s", diff)
	}
	if want := map[string]string{"podgroup.jhwagner.github.io/ready": "true"}; !maps.Equal(example.Spec.Selector.MatchLabels, want) {
		t.Errorf("the stage matches %v, want %v", example.Spec.Selector.MatchLabels, want)
	}
}
