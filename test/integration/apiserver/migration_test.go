// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
)

const (
	importsPath   = "/apis/migration.jobset-apiserver.io/v1alpha1/imports"
	inventoryPath = "/apis/migration.jobset-apiserver.io/v1alpha1/inventories/jobsets.jobset.x-k8s.io"
)

// migrated moves sets of a CustomResourceDefinition into the store of a server through kube-apiserver.
type migrated struct {
	page      *runbook.Page
	namespace string
	// source are the sets as the definition serves them.
	source []unstructured.Unstructured
	// manifest is the file that the page calls MIGRATION.
	manifest string
}

// TestMigrationAPI follows docs/reference/migration.md: a server with an empty store leaves the sets of a definition to kube-apiserver, takes
// them over the API, and serves them once the group is routed to it.
func TestMigrationAPI(t *testing.T) {
	newInstallation(t)
	m := &migrated{page: runbook.Open(t, filepath.Join("..", "..", "..", "docs", "reference", "migration.md"))}
	m.define(t)
	server := plane.StartServer(t, withWitness(framework.Embedded(framework.ShortDir(t))...)...)
	checkNotRouted(t, server)
	m.route(t, server)

	t.Run("rights", m.rights)
	t.Run("bad requests", m.badRequests)
	m.want(t, "dry run", m.post(t, true, m.source...), migration.Created)
	m.inventory(t)
	m.want(t, "first import", m.post(t, false, m.source[:2]...), migration.Created)
	m.inventory(t, m.source[:2]...)
	m.want(t, "repeated import", m.post(t, false, m.source...), migration.Unchanged, migration.Unchanged, migration.Created)
	m.want(t, "comparison", m.post(t, true, m.source...), migration.Unchanged)
	m.inventory(t, m.source...)

	routeJobSets(t, server)
	m.served(t, server)
	m.end(t)
}

// route applies artifacts/take-over/migration.yaml, with the Service and the authority of the server.
func (m *migrated) route(t *testing.T, server *framework.Server) {
	t.Helper()
	createService(t, server)
	manifest, err := os.ReadFile(filepath.Join("..", "..", "..", "artifacts", "take-over", "migration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(server.CertDir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	// The server of this test listens on another port.
	target := fmt.Sprintf("    port: %d\n  caBundle: %s\n", server.Port, base64.StdEncoding.EncodeToString(ca))
	text := strings.Replace(string(manifest), "    port: 443\n", target, 1)
	m.manifest = filepath.Join(t.TempDir(), "migration.yaml")
	if err := os.WriteFile(m.manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m.do(t, "kubectl apply -f MIGRATION", "MIGRATION", m.manifest)
	t.Cleanup(func() { _, _ = plane.Kubectl(t, "delete", "-f", m.manifest, "--ignore-not-found") })
	m.do(t, "kubectl create clusterrolebinding", "USER", "mover")
	t.Cleanup(func() {
		_, _ = plane.Kubectl(t, "delete", "clusterrolebinding", "jobset-migration", "--ignore-not-found")
	})
	// kubectl waits half a minute at most.
	framework.Eventually(t, "the APIService is available", func(ctx context.Context) error {
		name := apiservice.Name(migration.GroupVersion)
		current, err := plane.Dynamic.Resource(apiservice.Resource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if status, message := apiservice.Available(current); status != "True" {
			return fmt.Errorf("available is %q: %s", status, message)
		}
		return nil
	})
	m.do(t, "kubectl wait")
	framework.Eventually(t, "the group is routed", func(context.Context) error {
		_, err := plane.Kubectl(t, "get", "--raw", inventoryPath)
		return err
	})
}

// end ends the migration as the page does, after which kube-apiserver does not know the group.
func (m *migrated) end(t *testing.T) {
	t.Helper()
	m.do(t, "kubectl delete clusterrolebinding")
	m.do(t, "kubectl delete -f", "MIGRATION", m.manifest)
	framework.EventuallyNoProblem(t, func() string {
		if out, err := plane.Kubectl(t, "get", "--raw", inventoryPath); err == nil || !strings.Contains(out+err.Error(), "NotFound") {
			return fmt.Sprintf("the group is still routed: %v: %s", err, out)
		}
		return ""
	})
	m.page.Done(t)
}

// do runs the command of the page that begins so, and returns what it prints.
func (m *migrated) do(t *testing.T, prefix string, oldnew ...string) string {
	t.Helper()
	args := m.page.Command(t, prefix, oldnew...)[1:]
	out, err := plane.Kubectl(t, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// file writes an import of objects to a file.
func (m *migrated) file(t *testing.T, dryRun bool, objects ...unstructured.Unstructured) string {
	t.Helper()
	body := migration.Import{Spec: migration.ImportSpec{DryRun: dryRun}}
	body.APIVersion, body.Kind = migration.GroupVersion.String(), migration.KindImport
	for _, object := range objects {
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		body.Spec.Objects = append(body.Spec.Objects, text)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "import.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// post imports objects and returns the results.
func (m *migrated) post(t *testing.T, dryRun bool, objects ...unstructured.Unstructured) []migration.Result {
	t.Helper()
	var answer migration.Import
	if err := json.Unmarshal([]byte(m.do(t, "kubectl create --raw", "IMPORT", m.file(t, dryRun, objects...))), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Status.Results) != len(objects) {
		t.Fatalf("%d results of %d objects", len(answer.Status.Results), len(objects))
	}
	return answer.Status.Results
}

// want compares the verdicts. The last one holds for all further results, too.
func (m *migrated) want(t *testing.T, what string, results []migration.Result, verdicts ...migration.Verdict) {
	t.Helper()
	for i, result := range results {
		want := migration.Result{
			Resource: "jobsets.jobset.x-k8s.io", Namespace: m.namespace, Name: m.source[i].GetName(), UID: m.source[i].GetUID(),
			Verdict: verdicts[min(i, len(verdicts)-1)],
		}
		if diff := cmp.Diff(want, result, cmpopts.IgnoreFields(migration.Result{}, "Hash")); diff != "" || result.Hash == "" {
			t.Errorf("%s: hash %q (-want +got):\n%s", what, result.Hash, diff)
		}
	}
}

// inventory wants these objects in the store, with the hashes that a dry run gives.
func (m *migrated) inventory(t *testing.T, objects ...unstructured.Unstructured) {
	t.Helper()
	var got migration.Inventory
	if err := json.Unmarshal([]byte(m.do(t, "kubectl get --raw")), &got); err != nil {
		t.Fatal(err)
	}
	var want []migration.Item
	if len(objects) > 0 {
		for _, r := range m.post(t, true, objects...) {
			want = append(want, migration.Item{Namespace: r.Namespace, Name: r.Name, UID: r.UID, Hash: r.Hash})
		}
	}
	if diff := cmp.Diff(want, got.Items, cmpopts.EquateEmpty()); diff != "" || got.Continue != "" {
		t.Errorf("inventory, continued at %q (-want +got):\n%s", got.Continue, diff)
	}
}

// rights: administrators of namespaces may not use the API; a user to whom the role is bound may.
func (m *migrated) rights(t *testing.T) {
	if out, err := plane.Kubectl(t, "create", "clusterrolebinding", "migration-admin", "--clusterrole=admin", "--user=admin"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer func() { _, _ = plane.Kubectl(t, "delete", "clusterrolebinding", "migration-admin") }()
	for user, allowed := range map[string]bool{"admin": false, "mover": true} {
		for _, args := range [][]string{{"get", "--raw", inventoryPath}, {"create", "--raw", importsPath, "-f", m.file(t, true, m.source...)}} {
			framework.EventuallyNoProblem(t, func() string {
				out, err := plane.Kubectl(t, append(args, "--as="+user)...)
				if (err == nil) != allowed || err != nil && !strings.Contains(out+err.Error(), "forbidden") {
					return fmt.Sprintf("kubectl %s as %s: %v: %s", strings.Join(args, " "), user, err, out)
				}
				return ""
			})
		}
	}
}

func (m *migrated) badRequests(t *testing.T) {
	unknown := m.source[1].DeepCopy()
	_ = unstructured.SetNestedField(unknown.Object, "x", "spec", "unheardOf")
	results := m.post(t, true, *unknown)
	if len(results) != 1 || results[0].Verdict != migration.Rejected || !strings.Contains(results[0].Message, "unheardOf") {
		t.Errorf("an unknown field: %+v", results)
	}
	const want = "spec.objects: Required value: there must be at least one object, here or in spec.removed"
	out, err := plane.Kubectl(t, "create", "--raw", importsPath, "-f", m.file(t, true))
	if err == nil || !strings.Contains(out+err.Error(), want) {
		t.Errorf("no objects: %v: %s", err, out)
	}
}

// served compares what the server serves with the source.
func (m *migrated) served(t *testing.T, server *framework.Server) {
	t.Helper()
	aggregated := newEnv(t, server, server.Config(t))
	client, err := dynamic.NewForConfig(aggregated.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range m.source {
		got, err := client.Resource(jobsets).Namespace(m.namespace).Get(t.Context(), set.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wanted := set.DeepCopy()
		wanted.SetResourceVersion(got.GetResourceVersion())
		if diff := cmp.Diff(wanted.Object, got.Object); diff != "" {
			t.Errorf("%s (-source +served):\n%s", set.GetName(), diff)
		}
	}
}
