// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/etcdtest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	sourceSet = `{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
		"metadata": {"namespace": "ns", "name": "a", "uid": "uid-a", "resourceVersion": "70", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z"},
		"spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]}}}}}`
	sourceJobSet = `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"metadata": {"namespace": "ns", "name": "b", "uid": "uid-b", "resourceVersion": "71", "generation": 1, "creationTimestamp": "2026-01-02T03:04:05Z"},
		"spec": {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/main:1"}]}}}}}]}}`
	lwsDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "leaderworkersets.leaderworkerset.x-k8s.io"},
		"spec": {"versions": [{"name": "v1", "served": true}]}}`
	localService = `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.leaderworkerset.x-k8s.io"}, "spec": {}}`
)

// serving is a main cluster whose kube-system has a UID, with custom resources.
func serving(t *testing.T, uid types.UID, objects ...string) *mainCluster {
	t.Helper()
	m := newCluster(t)
	if err := m.kube.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: witness.Namespace, UID: uid}}); err != nil {
		t.Fatal(err)
	}
	var things []runtime.Object
	for _, text := range objects {
		var thing unstructured.Unstructured
		if err := thing.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		things = append(things, &thing)
	}
	m.dynamic = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}: "LeaderWorkerSetList",
	}, things...)
	return m
}

func listFile(t *testing.T, items ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.json")
	if err := os.WriteFile(path, []byte(`{"kind": "List", "apiVersion": "v1", "items": [`+strings.Join(items, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	left       = ": left out: the main cluster has no CustomResourceDefinition "
	lwsName    = "leaderworkersets.leaderworkerset.x-k8s.io"
	jobSetName = "jobsets.jobset.x-k8s.io"
)

// TestImport goes through a take-over from the main cluster.
func TestImport(t *testing.T) {
	e := startEmbedded(t, etcdtest.Dir(t))
	e.putWitness(witness.Format)
	m := serving(t, "cluster", lwsDefinition, localService, sourceSet)
	for _, step := range []struct {
		args string
		want result
	}{
		{"--compare", result{code: 1, out: lwsName + ": 1 object\n", errOut: lwsName + " ns/a: only at the source\n", message: "1 object was different: see above"}},
		{"--dry-run=client", result{out: lwsName + ": 1 created, 0 updated, 0 unchanged, 0 pruned (dry run)\n"}},
		{"", result{out: lwsName + ": 1 created, 0 updated, 0 unchanged, 0 pruned\n"}},
		{lwsName, result{out: lwsName + ": 0 created, 0 updated, 1 unchanged, 0 pruned\n"}},
		{"--compare", result{out: lwsName + ": 1 object\n"}},
	} {
		got := m.run(append([]string{"import", "--data-dir=" + e.dir}, strings.Fields(step.args)...)...)
		named := step.args == lwsName
		if strings.Contains(got.errOut, jobSetName+left+jobSetName) == named {
			t.Errorf("%q: the standard error is %q", step.args, got.errOut)
		}
		lines := strings.SplitAfter(got.errOut, "\n")
		got.errOut = ""
		for _, line := range lines {
			if !strings.Contains(line, left) {
				got.errOut += line
			}
		}
		if got != step.want {
			t.Errorf("%q:\ngot  %+v\nwant %+v", step.args, got, step.want)
		}
	}
	file := filepath.Join(etcdtest.Dir(t), "backup.db")
	if got := m.run("backup", file, "--data-dir="+e.dir); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := m.run("verify", file); got.code != 0 || !strings.Contains(got.out, lwsName+": 1 object\n") {
		t.Errorf("the backup of a store with marks of an import: %+v", got)
	}
}

// TestImportFile takes objects of several kinds from a file.
func TestImportFile(t *testing.T) {
	e := startEmbedded(t, etcdtest.Dir(t))
	m := serving(t, "cluster")
	want := result{out: jobSetName + ": 1 created, 0 updated, 0 unchanged, 0 pruned\n" + lwsName + ": 1 created, 0 updated, 0 unchanged, 0 pruned\n"}
	if got := m.run("import", "--data-dir="+e.dir, "--file="+listFile(t, sourceSet, sourceJobSet)); got != want {
		t.Errorf("%+v", got)
	}
	m.in = bytes.NewBufferString(`{"items": [` + sourceJobSet + `]}`)
	if got := m.run("import", "--data-dir="+e.dir, "--file=-"); got.out != jobSetName+": 0 created, 0 updated, 1 unchanged, 0 pruned\n" || got.code != 0 {
		t.Errorf("from the standard input: %+v", got)
	}
	invalid := strings.Replace(strings.ReplaceAll(sourceSet, `-a"`, `-c"`), `"a"`, `"c"`, 1)
	invalid = strings.Replace(invalid, `"size": 2`, `"size": 0`, 1)
	file := listFile(t, strings.Replace(strings.Replace(sourceSet, `"a"`, `"d"`, 1), "uid-a", "uid-d", 1), invalid)
	got := m.run("import", "--data-dir="+e.dir, "--file="+file)
	if got.code != 1 || got.out != "" || !strings.HasPrefix(got.errOut, lwsName+" ns/c not imported: spec.leaderWorkerTemplate.size: Invalid value: ") ||
		got.message != "1 object was not accepted, and nothing was imported: correct the causes above, or leave them out with --skip-invalid, which loses their children" {
		t.Errorf("an invalid object: %+v", got)
	}
	got = m.run("import", "--data-dir="+e.dir, "--file="+file, "--skip-invalid")
	if got.code != 1 || got.out != lwsName+": 1 created, 0 updated, 0 unchanged, 0 pruned\n" || !strings.HasPrefix(got.errOut, lwsName+" ns/c left out: ") ||
		!strings.HasSuffix(got.errOut, lwsName+" ns/a not imported: it was imported, and the source does not have it any more: add --prune to delete it from the store\n") ||
		got.message != "1 object was not imported: correct the causes above and run the command again" {
		t.Errorf("left out: %+v", got)
	}
}

// TestImportMistakes: each error says what must be, and nothing is written.
func TestImportMistakes(t *testing.T) {
	e := startEmbedded(t, etcdtest.Dir(t))
	e.putWitness(witness.Format)
	routed := strings.Replace(localService, `"spec": {}`, `"spec": {"service": {"namespace": "jobset-system", "name": "jobset-apiserver"}}`, 1)
	valid, empty := listFile(t, sourceSet), listFile(t)
	for name, tc := range map[string]struct {
		cluster *mainCluster
		args    []string
		want    string
	}{
		"another cluster": {serving(t, "another", lwsDefinition, localService), []string{"--file=" + valid},
			"the store must belong to the cluster another, but it belongs to cluster: use the kubeconfig of that cluster (--kubeconfig, --context), or another store"},
		"nothing to import": {serving(t, "cluster"), nil,
			"the main cluster serves none of the resources by a CustomResourceDefinition: there is nothing to import"},
		"a group that we serve": {serving(t, "cluster", lwsDefinition, routed), []string{lwsName},
			"APIService v1.leaderworkerset.x-k8s.io must be local, but Service jobset-system/jobset-apiserver serves it: the objects of CustomResourceDefinition " + lwsName + " cannot be read"},
		"no definition":      {serving(t, "cluster"), []string{lwsName}, "the main cluster has no CustomResourceDefinition " + lwsName},
		"another resource":   {serving(t, "cluster"), []string{"pods"}, `argument "pods" must be one of disaggregatedsetrolescalers.`},
		"both sources":       {serving(t, "cluster"), []string{lwsName, "--file=x"}, `argument "` + lwsName + `" must not be given with --file: all objects of the file are imported`},
		"a dry run there":    {serving(t, "cluster"), []string{"--dry-run=server"}, "--dry-run: must be none or client, not server: the command writes to the store, not to the server"},
		"a bad dry run":      {serving(t, "cluster"), []string{"--dry-run=x"}, `--dry-run: must be none, server or client, not "x"`},
		"compare and prune":  {serving(t, "cluster"), []string{"--compare", "--prune"}, "--compare: must not be set together with --prune or --dry-run, because it writes nothing"},
		"no file":            {serving(t, "cluster"), []string{"--file=/no/such/file"}, "--file: open /no/such/file: no such file or directory"},
		"a broken file":      {serving(t, "cluster"), []string{"--file=/dev/null"}, "--file: ends before the list does"},
		"no gate":            {serving(t, "cluster"), []string{"--feature-gates=X=true"}, "--feature-gates: unrecognized feature gate: X: give those of the server"},
		"no encryption file": {serving(t, "cluster"), []string{"--encryption-provider-config=/no/file"}, "--encryption-provider-config: error while parsing file: "},
		"an empty file":      {serving(t, "cluster"), []string{"--file=" + empty}, "--file: must have at least one object of a kind that this version stores"},
	} {
		got := tc.cluster.run(append([]string{"import", "--data-dir=" + e.dir}, tc.args...)...)
		if got.code != 1 || got.out != "" || !strings.HasPrefix(got.message, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := serving(t, "cluster").run("import", "--data-dir="+etcdtest.Dir(t), "--file="+valid); got.code != 1 || !strings.HasPrefix(got.message, "--data-dir: no server runs in ") {
		t.Errorf("no server: %+v", got)
	}
	e.putWitness(witness.Format + 1)
	if got := serving(t, "cluster").run("import", "--data-dir="+e.dir, "--file="+valid); got.code != 1 || !strings.HasPrefix(got.message, "version v9.9.9 has written the store in format 2") {
		t.Errorf("a newer format: %+v", got)
	}
}
