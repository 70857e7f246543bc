// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handover has what tests of "kubectl jobset migrate" need in a local cluster: the controllers of upstream, which run as
// they are released, our programs beside them, and the command.
package handover

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/etcdcluster"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/replicas"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// gates are the feature gates of our programs, which upstream's controller has, too.
const gates = "InPlaceRestart=true"

// Cluster is a local cluster that was created with CLUSTER_COMPONENTS=none, with clients of its administrator.
type Cluster struct {
	*localcluster.Cluster
	*framework.Clients
	Dynamic  dynamic.Interface
	Metadata metadata.Interface

	// Servers is how many of our servers there are to be. More than one have an etcd of their own.
	Servers int
	// Groups are routed to our server. Nil stands for the only one that no definition of upstream has.
	Groups []schema.GroupVersion

	// server runs until it is killed, with its store in the directory data. Command is its command line, port and ca are where it is called.
	server  *framework.Process
	data    string
	command []string
	port    int
	ca      []byte
	// replicas run in place of it if there are several, with their store in etcd.
	replicas *replicas.Set
	etcd     *etcdcluster.Cluster
}

// Connect makes the clients.
func Connect(local *localcluster.Cluster) (*Cluster, error) {
	config, err := local.Config()
	if err != nil {
		return nil, err
	}
	// The library of CustomResourceDefinitions knows no protobuf, and panics on some of it.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c := &Cluster{Cluster: local}
	if c.Clients, err = framework.NewClients(config); err != nil {
		return nil, err
	}
	if c.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	c.Metadata, err = metadata.NewForConfig(config)
	return c, err
}

// Command returns the command.
func (c *Cluster) Command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.Program("kubectl-jobset"), append([]string{"migrate", "--kubeconfig=" + c.Kubeconfig()}, args...)...)
}

// Migrate runs the command, which must succeed, and returns what it printed.
func (c *Cluster) Migrate(t testing.TB, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
	defer stop()
	out, err := c.Command(ctx, args...).CombinedOutput()
	t.Logf("migrate %v: %s", args, out)
	if err != nil {
		t.Fatalf("migrate %v: %v", args, err)
	}
	return string(out)
}

// StartController starts our controller, which runs until the test has ended, with further flags.
func (c *Cluster) StartController(t testing.TB, flags ...string) *framework.Process {
	t.Helper()
	kubeconfig := filepath.Join(c.Dir, "server", "controller.kubeconfig")
	if err := c.WriteKubeconfig(t.Context(), "jobset-controller-manager", kubeconfig); err != nil {
		t.Fatal(err)
	}
	process, err := framework.StartProcess(filepath.Join(c.Dir, "logs", "jobset-controller.log"), c.Program("jobset-controller"),
		append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect-resource-namespace=jobset-system", "--metrics-bind-address=0",
			"--health-probe-bind-address=0", "--feature-gates=" + gates, "--v=2"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process
}
