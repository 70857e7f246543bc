// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// publicManifests are the directories of the manifests that users copy: our manifests, and the examples of upstream.
var publicManifests = []string{"artifacts/examples", "test/parity/cluster/testdata/examples"}

// publicObjects is a directory of all objects of our kinds in publicManifests, each with a name of its own, and the files they are from.
type publicObjects struct {
	dir     string
	objects map[string]*unstructured.Unstructured
	files   map[string]string
}

// TestPublicManifestsApplyTwice applies each public manifest twice, by the client and by two server-side appliers: nothing may change the
// second time, and nothing may conflict. Argo CD and Flux decide from the same requests whether an object has drifted.
func TestPublicManifestsApplyTwice(t *testing.T) {
	tier.OnRequest(t, "applies all public manifests with three clients")
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), "--feature-gates=AllAlpha=true,AllBeta=true")...)
	plane.Aggregate(t, server)
	aggregateRoles(t, server)
	m := readPublicObjects(t)
	t.Run("kubectl says unchanged", func(t *testing.T) { testAppliedByClient(t, newEnv(t, server, plane.Config), m) })
	t.Run("two appliers do not conflict", func(t *testing.T) { testAppliedByServer(t, newEnv(t, server, plane.Config), m) })
	t.Run("what the page advises is stable", func(t *testing.T) { testStableManifests(t, newEnv(t, server, plane.Config)) })
	t.Run("Jobs are rewritten likewise", func(t *testing.T) { testRewrittenInJobs(t, newEnv(t, server, plane.Config)) })
	t.Run("another image needs another object", func(t *testing.T) { testRecreated(t, newEnv(t, server, plane.Config)) })
	t.Run("a queue owns the suspension", func(t *testing.T) { testQueueOwnsSuspend(t, newEnv(t, server, plane.Config)) })
}

// aggregateRoles makes kube-apiserver forward the group that is off by default, too.
func aggregateRoles(t *testing.T, server *framework.Server) {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(server.CertDir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	services := plane.Dynamic.Resource(apiservice.Resource)
	roles := apiservice.New(disaggregatedsetv1.SchemeGroupVersion, server.Port, ca)
	if _, err := services.Create(t.Context(), roles, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := services.Delete(context.WithoutCancel(t.Context()), roles.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	framework.Eventually(t, "the schema of the group is published", func(context.Context) error {
		paths, err := plane.Kube.Discovery().OpenAPIV3().Paths()
		if _, found := paths["apis/"+disaggregatedsetv1.SchemeGroupVersion.String()]; err == nil && !found {
			err = errors.New("it is not")
		}
		return err
	})
}

func readPublicObjects(t *testing.T) publicObjects {
	t.Helper()
	m := publicObjects{dir: t.TempDir(), objects: map[string]*unstructured.Unstructured{}, files: map[string]string{}}
	for _, dir := range publicManifests {
		err := filepath.WalkDir(filepath.Join("..", "..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			return m.add(t, path)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(m.objects) < 50 {
		t.Fatalf("found %d objects of our kinds, want at least 50", len(m.objects))
	}
	t.Logf("%d objects", len(m.objects))
	return m
}

// add takes the objects of our kinds from a file.
func (m publicObjects) add(t *testing.T, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		group := object.GroupVersionKind().Group
		if !slices.Contains([]string{"jobset.x-k8s.io", "batch.jobset-apiserver.io", "leaderworkerset.x-k8s.io", disaggregatedsetv1.GroupName}, group) {
			continue
		}
		name := fmt.Sprintf("m%02d", len(m.objects))
		object.SetName(name)
		object.SetGenerateName("")
		object.SetNamespace("")
		m.objects[name], m.files[name] = object, path
		written, err := object.MarshalJSON()
		if err == nil {
			err = os.WriteFile(filepath.Join(m.dir, name+".json"), written, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// live returns the objects of the namespace as the server has them.
func (m publicObjects) live(t *testing.T, namespace string) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for name, object := range m.objects {
		current, err := plane.Dynamic.Resource(resourceOf(object)).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found[name] = current
	}
	return found
}

func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	resource, _ := apimeta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return resource
}

// rewritten are the fields of public manifests that read back in another form than they were written: lists that are one value, in whose
// items the server sets or shows more, and quantities that are numbers. A second apply replaces them by what they were, which changes
// nothing, but kubectl says configured, and a second applier has a conflict. In Jobs, that is so, too (testRewrittenInJobs).
var rewritten = map[string][]string{
	"all-reduce.yaml":                      {".spec.volumeClaimPolicies"},
	"volume-claim-policy.yaml":             {".spec.volumeClaimPolicies"},
	"failure-policy-failjobset.yaml":       {".spec.failurePolicy.rules"},
	"failure-policy-host-maintenance.yaml": {`.spec.replicatedJobs[name="leader"].template.spec.podFailurePolicy.rules`},
	"tpu-multislice.yaml": {
		`.spec.replicatedJobs[name="slice"].template.spec.template.spec.containers[name="tpu"].resources.limits.example.com/tpu`,
		`.spec.replicatedJobs[name="slice"].template.spec.template.spec.containers[name="tpu"].resources.requests.example.com/tpu`,
	},
}

func (m publicObjects) rewritten(name string) []string {
	return rewritten[filepath.Base(m.files[name])]
}

func testAppliedByClient(t *testing.T, e *env, m publicObjects) {
	if out, err := plane.Kubectl(t, "apply", "-n", e.namespace, "-f", m.dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := m.live(t, e.namespace)
	out, err := plane.Kubectl(t, "apply", "-n", e.namespace, "-f", m.dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := map[string]string{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if _, name, isObject := strings.Cut(words[0], "/"); isObject {
			said[name] = words[len(words)-1]
		}
	}
	after := m.live(t, e.namespace)
	for name, file := range m.files {
		want := "unchanged"
		if len(m.rewritten(name)) > 0 {
			want = "configured"
		}
		if said[name] != want {
			t.Errorf("%s: a second apply says %q, want %s", file, said[name], want)
		}
		if diff := cmp.Diff(before[name].Object, after[name].Object); diff != "" {
			t.Errorf("%s: the second apply changed (-before +after):\n%s", file, diff)
		}
	}
	testClientSideDiff(t, m, after)
}

func testAppliedByServer(t *testing.T, e *env, m publicObjects) {
	if out, err := plane.Kubectl(t, "apply", "-n", e.namespace, "--server-side", "--field-manager=a", "-f", m.dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	live := m.live(t, e.namespace)
	for name, object := range m.objects {
		content, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		objects := plane.Dynamic.Resource(resourceOf(object)).Namespace(e.namespace)
		// Flux asks so whether an object has drifted, and Argo CD with ServerSideDiff.
		for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
			options := metav1.PatchOptions{FieldManager: "a", Force: new(true), DryRun: dryRun}
			answer, err := objects.Patch(t.Context(), name, types.ApplyYAMLPatchType, content, options)
			if err != nil {
				t.Fatalf("%s: %v", m.files[name], err)
			}
			if diff := cmp.Diff(live[name].Object, answer.Object); diff != "" {
				t.Errorf("%s: a second apply (dry run: %v) changes (-stored +answer):\n%s", m.files[name], dryRun, diff)
			}
		}
		_, err = objects.Patch(t.Context(), name, types.ApplyYAMLPatchType, content, metav1.PatchOptions{FieldManager: "b"})
		if diff := cmp.Diff(m.rewritten(name), conflicts(t, err)); diff != "" {
			t.Errorf("%s: conflicts of a second applier (-want +got):\n%s", m.files[name], diff)
		}
		if after, err := objects.Get(t.Context(), name, metav1.GetOptions{}); err != nil || after.GetGeneration() != 1 {
			t.Errorf("%s: generation %d after all (%v)", m.files[name], after.GetGeneration(), err)
		}
	}
}

// conflicts returns the fields of which an error says that others own them.
func conflicts(t *testing.T, err error) (fields []string) {
	t.Helper()
	var status apierrors.APIStatus
	if err == nil {
		return nil
	}
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatal(err)
	}
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return fields
}
