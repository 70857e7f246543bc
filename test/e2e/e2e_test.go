// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e drives the kubectl that belongs to the cluster, as a user would, against a full control plane with our API
// server and our controller. The control plane is started once for the package in a directory of its own, or, with
// JOBSET_E2E_CLUSTER_DIR, one that runs already, with the gates of sharedGates, is used and left alone.
package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	runner "github.com/jobset-apiserver/jobset-apiserver/test/framework/kubectl"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// cluster is a running control plane.
type cluster = localcluster.Cluster

// shared is the control plane of this package.
var shared *cluster

// parallelTests is how many tests run at a time of those that may, unless the command line says otherwise (-parallel). More
// of them would make answers slow.
const parallelTests = "4"

// sharedGates are the feature gates of the shared control plane: each of them serves a kind that is off by default. Features that change
// how other kinds behave are not among them; they are on in the control plane gated.
const sharedGates = "CLUSTER_FEATURE_GATES=DisaggregatedSet=true"

func TestMain(m *testing.M) {
	// The command line is parsed later.
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		panic(err)
	}
	suite.Main("e2e", func() (int, error) { return runSuite(m) })
}

func runSuite(m *testing.M) (code int, err error) {
	policy, err := writeAuditPolicy()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(filepath.Dir(policy))
	// Metrics of backups exist only with a directory for them, and those of uploads with a bucket. One that is away affects nothing else.
	backups, err := os.MkdirTemp("", "e2e-backups-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(backups)
	flags := []string{localcluster.ShortShutdown, "--backup-dir=" + backups, "--backup-upload=s3://backups/e2e/", "--s3-endpoint=http://127.0.0.1:1"}
	shared, err = localcluster.New(".cluster-e2e", "JOBSET_E2E_CLUSTER_DIR", sharedGates,
		"CLUSTER_AUDIT_POLICY="+policy, "CLUSTER_APISERVER_ARGS="+strings.Join(flags, " "))
	if err != nil {
		return 0, err
	}
	code, err = shared.Run(m, func() error { return nil })
	return code, errors.Join(err, gated.stop(err == nil && code == 0))
}

// gated is a control plane in which features are on that are off by default. The first test that needs it starts it.
var gated lazyCluster

type lazyCluster struct {
	once    sync.Once
	cluster *cluster
	err     error
}

// use returns the control plane, which tests share and must not break.
func (l *lazyCluster) use(t *testing.T) *cluster {
	t.Helper()
	l.once.Do(func() {
		l.cluster = ownCluster("gated", "CLUSTER_APISERVER_ARGS="+localcluster.ShortShutdown,
			"CLUSTER_FEATURE_GATES=ElasticJobSet=true,DisaggregatedSet=true,InPlaceRestart=true,SequentialJobWorkload=true")
		l.err = errors.Join(l.cluster.Script("down"), l.cluster.Script("up"))
	})
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l.cluster
}

func (l *lazyCluster) stop(good bool) error {
	if l.cluster == nil {
		return nil
	}
	return l.cluster.Stop(good)
}

// ownCluster is a cluster beside the shared one, in a directory with that ending.
func ownCluster(ending string, env ...string) *cluster {
	if !shared.Borrowed { // the programs were built for the shared one
		env = append(env, "CLUSTER_BIN="+filepath.Dir(shared.Program("jobset-apiserver")))
	}
	return &cluster{Root: shared.Root, Dir: filepath.Join(shared.Root, ".cluster-e2e-"+ending), Env: env}
}

// startCluster starts a cluster for one test, in a directory with that ending.
func startCluster(t *testing.T, ending string, env ...string) *cluster {
	t.Helper()
	c := ownCluster(ending, env...)
	t.Cleanup(func() {
		if err := c.Stop(!t.Failed()); err != nil {
			t.Error(err)
		}
	})
	for _, command := range []string{"down", "up"} {
		if err := c.Script(command); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// auditLog is the path of the log of our API server.
func auditLog(c *cluster) string {
	return filepath.Join(c.Dir, "logs", "apiserver-audit.log")
}

// result is what one kubectl call left.
type result struct {
	stdout, stderr string
	code           int
}

// kubectl is the program of one test, with a namespace and credentials.
type kubectl struct {
	framework.Test
	cluster    *cluster
	namespace  string
	kubeconfig string
	env        []string
}

// newKubectl makes a namespace for the test, removes it afterwards, and returns kubectl as administrator in it.
func newKubectl(t *testing.T) *kubectl {
	t.Helper()
	return newKubectlFor(t, shared)
}

func newKubectlFor(t *testing.T, c *cluster) *kubectl {
	t.Helper()
	k := &kubectl{Test: framework.Test{T: t}, cluster: c, kubeconfig: c.Kubeconfig(), namespace: runner.Namespace(t)}
	runner.CreateNamespace(t, k.kubeconfig, k.namespace)
	t.Cleanup(func() {
		if t.Failed() {
			k.dump()
		}
		runner.DeleteNamespace(t, k.kubeconfig, k.namespace)
	})
	return k
}

// admitsPods waits for the service account of the namespace, without which kube-apiserver admits no pod.
func (k *kubectl) admitsPods() {
	k.Helper()
	runner.AwaitServiceAccount(k, k.kubeconfig, k.namespace)
}

// dump writes what helps to understand a failure.
func (k *kubectl) dump() {
	for _, args := range [][]string{
		{"get", "jobsets,jobs,pods,services", "-o", "wide"},
		{"get", "jobsets", "-o", "yaml"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		r := k.run("", args...)
		k.Logf("kubectl %s\n%s%s", strings.Join(args, " "), r.stdout, r.stderr)
	}
}

// run calls kubectl in the namespace of the test and returns what it did, whatever that is.
func (k *kubectl) run(stdin string, args ...string) result {
	k.Helper()
	return k.call(stdin, nil, append([]string{"--namespace", k.namespace}, args...)...)
}

// call calls kubectl with some further environment. A call ends after six minutes.
func (k *kubectl) call(stdin string, env []string, args ...string) result {
	k.Helper()
	r := runner.Call(k.T, kubectlPath(k.T), k.kubeconfig, stdin, slices.Concat(env, k.env), args...)
	return result{r.Stdout, r.Stderr, r.Code}
}

// ok calls kubectl, which must succeed, and returns what it printed.
func (k *kubectl) ok(args ...string) string {
	k.Helper()
	return k.okIn("", args...)
}

// okIn is ok with text on the standard input, for `-f -`.
func (k *kubectl) okIn(stdin string, args ...string) string {
	k.Helper()
	r := k.run(stdin, args...)
	if r.code != 0 {
		k.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// refused calls kubectl, which must fail with every one of the texts in its message.
func (k *kubectl) refused(stdin string, args []string, texts ...string) {
	k.Helper()
	r := k.run(stdin, args...)
	if r.code == 0 {
		k.Fatalf("kubectl %s succeeded, must be refused:\n%s", strings.Join(args, " "), r.stdout)
	}
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			k.Errorf("kubectl %s: message %q does not contain %q", strings.Join(args, " "), r.stderr, text)
		}
	}
}

// field returns one JSONPath of one object.
func (k *kubectl) field(object, path string) string {
	k.Helper()
	return k.ok("get", object, "-o", "jsonpath="+path)
}

// eventually polls until the check finds no problem. An error of kubectl in it is a problem, too.
func (k *kubectl) eventually(check func() (problem string)) {
	k.Helper()
	framework.EventuallyNoProblem(k, check)
}

// wait waits with `kubectl wait` for something that happens once and stays.
func (k *kubectl) wait(args ...string) {
	k.Helper()
	k.eventually(func() string {
		k.ok(append([]string{"wait", "--timeout=60s"}, args...)...)
		return ""
	})
}

// delete deletes with kubectl, and waits until what it names is gone.
func (k *kubectl) delete(args ...string) {
	k.Helper()
	k.eventually(func() string {
		k.ok(append([]string{"delete", "--ignore-not-found", "--timeout=60s"}, args...)...)
		return ""
	})
}

// as returns kubectl with a bearer token and no other credentials.
func (k *kubectl) as(token string) *kubectl {
	k.Helper()
	server := k.ok("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	path := filepath.Join(k.TempDir(), "kubeconfig")
	ca := k.ok("config", "view", "--minify", "--raw", "--flatten", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, server, ca, token)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		k.Fatal(err)
	}
	other := *k
	other.kubeconfig = path
	return &other
}

// kubectlPath is the kubectl that was built with the control plane.
func kubectlPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(binaries(t), "kubectl")
}
