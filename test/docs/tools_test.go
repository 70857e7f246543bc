// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestToolsArePagesOfTheDocumentation: a tool that sees nothing of an aggregated API reports no error, so that its users search for its name.
func TestToolsArePagesOfTheDocumentation(t *testing.T) {
	page := read(t, "docs/operations/tools.md")
	for _, tool := range []string{"kube-state-metrics", "CustomResourceStateMetrics", "Velero", "Headlamp", "Visual Studio Code", "Terraform", "Argo CD", "Flux", "Helm", "KEDA", "VerticalPodAutoscaler"} {
		if !strings.Contains(page, tool) {
			t.Errorf("docs/operations/tools.md does not name %s", tool)
		}
	}
	metrics := read(t, "docs/operations/metrics.md")
	named := regexp.MustCompile("`((?:jobset|leaderworkerset|disaggregatedset|sequentialjob)_[a-z_]+)`").FindAllStringSubmatch(page, -1)
	for _, name := range named {
		if !strings.Contains(metrics, "| `"+name[1]+"` |") {
			t.Errorf("docs/operations/tools.md names the metric %s, which does not exist", name[1])
		}
	}
	if len(named) < 10 {
		t.Errorf("docs/operations/tools.md names %d metrics in place of series", len(named))
	}
	probes := read(t, "docs/operations/lookups.md")
	for _, probe := range []string{
		"get crd jobsets.jobset.x-k8s.io", "condition=Established crd/leaderworkersets.leaderworkerset.x-k8s.io", "deployment/jobset-controller-manager",
		"jobset-webhook-service", "gcluster", "XPK", "NVIDIA",
	} {
		if !strings.Contains(probes, probe) {
			t.Errorf("docs/operations/lookups.md does not have %q", probe)
		}
	}
}

// hookObject has the fields of the objects in a template with a hook that decide whether the hook works.
type hookObject struct {
	Kind     string
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Rules []rbacv1.PolicyRule
	Spec  struct {
		Template struct{ Spec corev1.PodSpec }
	}
}

// TestHelmWaitsWithTheRightsThatItNeeds: the Job of a template is a hook, which waits for a set. Its rights are objects of the release:
// Helm deletes them with the release, and no other release in the namespace shares them.
func TestHelmWaitsWithTheRightsThatItNeeds(t *testing.T) {
	for file, want := range map[string]struct{ name, resource, wait string }{
		"helm-wait.yaml":          {"{{ .Release.Name }}-wait", "leaderworkersets", "--for=condition=Available"},
		"helm-wait-finished.yaml": {"{{ .Release.Name }}-finished", "jobsets", "--for=condition=Completed"},
	} {
		var kinds []string
		for _, document := range strings.Split(read(t, "artifacts/gitops/"+file), "\n---\n") {
			var object hookObject
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, object.Kind)
			hook := object.Metadata.Annotations["helm.sh/hook"] == "post-install,post-upgrade"
			if object.Metadata.Name != want.name || hook != (object.Kind == "Job") {
				t.Errorf("%s: %s: %+v", file, object.Kind, object.Metadata)
			}
			switch pod := &object.Spec.Template.Spec; object.Kind {
			case "Role":
				rule := &object.Rules[0]
				if !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) || !slices.Equal(rule.Resources, []string{want.resource}) {
					t.Errorf("%s: rules: %+v", file, object.Rules)
				}
			case "Job":
				last := &pod.Containers[len(pod.Containers)-1]
				if pod.ServiceAccountName != want.name || !slices.Contains(last.Command, want.wait) {
					t.Errorf("%s: pod: %+v", file, pod)
				}
			}
		}
		if want := []string{"ServiceAccount", "Role", "RoleBinding", "Job"}; !slices.Equal(kinds, want) {
			t.Errorf("%s: kinds %v, want %v", file, kinds, want)
		}
	}
}

// TestHooksOfHelmAreOnThePage: the page has what to replace in the templates for other kinds, as test/helm replaces it.
func TestHooksOfHelmAreOnThePage(t *testing.T) {
	page := read(t, "docs/operations/gitops.md")
	for _, text := range []string{
		"artifacts/gitops/helm-wait.yaml", "artifacts/gitops/helm-wait-finished.yaml",
		"| SequentialJob | `helm-wait-finished.yaml` | `batch.jobset-apiserver.io` | `sequentialjobs` | `{.status.completionTime}` and `Complete` |",
		"| JobSet | `helm-wait-finished.yaml` | `jobset.x-k8s.io` | `jobsets` | `{.status.terminalState}` and `Completed` |",
		"error: condition not met for jobsets/train",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("docs/operations/gitops.md does not have %q", text)
		}
	}
}

// TestDefinitionsForLookupsServeNothing: a definition that served a version would hide or take over the objects of jobset-apiserver.
func TestDefinitionsForLookupsServeNothing(t *testing.T) {
	for _, name := range []string{"jobsets.jobset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io", "disaggregatedsets.disaggregatedset.x-k8s.io"} {
		plural, group, _ := strings.Cut(name, ".")
		var definition struct {
			Metadata struct{ Name string }
			Spec     struct {
				Group    string
				Versions []struct {
					Name            string
					Served, Storage bool
				}
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, "artifacts/components/upstream-definitions/"+plural+".yaml")), &definition); err != nil {
			t.Fatal(err)
		}
		versions := definition.Spec.Versions
		if definition.Metadata.Name != name || definition.Spec.Group != group || len(versions) != 1 || versions[0].Served || !versions[0].Storage {
			t.Errorf("%s: %+v", name, definition)
		}
		if services := read(t, "artifacts/base/apiservice.yaml") + read(t, "artifacts/components/disaggregatedset/apiservice.yaml"); !strings.Contains(services, "name: "+versions[0].Name+"."+group+"\n") {
			t.Errorf("%s has the version %s, which jobset-apiserver does not serve", name, versions[0].Name)
		}
	}
}

// TestDeploymentsHaveNamesOfTheirOwn: the manifests of upstream must not replace our programs when a launcher applies them.
func TestDeploymentsHaveNamesOfTheirOwn(t *testing.T) {
	for _, file := range []string{"artifacts/base/controller.yaml", "charts/jobset-apiserver/templates/controller.yaml"} {
		for _, document := range strings.Split(read(t, file), "\n---\n") {
			for _, kind := range []string{"Deployment", "Service"} {
				if strings.Contains(document, "\nkind: "+kind+"\n") && strings.Contains(document, "\n  name: jobset-controller-manager") {
					t.Errorf("%s: a %s has the name of upstream's", file, kind)
				}
			}
		}
	}
}
