// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operations does to an installation on two real nodes what operators do, and what happens to them: rolling
// restarts, drains, the loss of a node. Three API servers, two controllers and three members of etcd run as pods from
// the manifests, and a probe asks for JobSets through kube-apiserver meanwhile. It needs root. With
// JOBSET_OPERATIONS_CLUSTER_DIR, a cluster that runs already is used and left alone.
package operations

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/probe"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const (
	// namespace is the namespace of the installation.
	namespace = "jobset-system"
	// everythingVariable asks for all that is tested, which takes about half an hour.
	everythingVariable = "JOBSET_OPERATIONS_ALL"
)

// settings are the settings of clusters of this package. Nodes are found to be lost as soon as with the defaults of
// Kubernetes; the program that creates the control plane has longer times.
var settings = []string{
	"CLUSTER_REAL_NODES=2", "CLUSTER_NODES=0", "CLUSTER_COMPONENTS=images",
	"CLUSTER_KUBE_CONTROLLER_MANAGER_ARGS=--node-monitor-period=5s --node-monitor-grace-period=50s",
}

var (
	shared  *localcluster.Cluster
	config  *rest.Config
	core    kubernetes.Interface
	jobsets versioned.Interface
	// binaries is the directory with kubectl and etcd.
	binaries string
)

func everything() bool { return os.Getenv(everythingVariable) != "" }

func TestMain(m *testing.M) {
	suite.Main("operations", func() (int, error) { return runSuite(m) })
}

func runSuite(m *testing.M) (int, error) {
	var err error
	shared, err = localcluster.New(".cluster-nodes-operations", "JOBSET_OPERATIONS_CLUSTER_DIR", settings...)
	if err != nil {
		return 0, err
	}
	if binaries, err = localcluster.TestBinaries(shared.Root); err != nil {
		return 0, err
	}
	return shared.Run(m, func() error {
		if err := connect(); err != nil {
			return err
		}
		return install(context.Background())
	})
}

func connect() (err error) {
	if config, err = shared.Config(); err != nil {
		return err
	}
	if core, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	jobsets, err = versioned.NewForConfig(config)
	return err
}

// kubectl runs a command of an operator, and returns what it printed.
func kubectl(ctx context.Context, args ...string) (string, error) {
	return command(ctx, filepath.Join(binaries, "kubectl"), args...)
}

// command runs a program with the cluster as the current one, and with kubectl in its path.
func command(ctx context.Context, program string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig(), "PATH="+binaries+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(program), strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// must runs a command of kubectl that must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// observe does something while a probe asks, about 32 requests a second and a watch. It fails the test if an
// acknowledged write is lost, and, of something harmless, if a request fails for another reason than that it met a GOAWAY, or a server that
// asked it to come again: how many these are depends on the machine, and client-go sends them again.
func observe(t *testing.T, what string, harmless bool, do func(s *steps)) {
	t.Helper()
	p, err := probe.Start(t.Context(), config, probe.Options{Period: 250 * time.Millisecond, AllWrites: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &steps{Test: framework.Test{T: t}, begin: time.Now()}
	do(s)
	took := time.Since(s.begin)
	report, err := p.Stop(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Error(err)
	}
	t.Logf("%s took %s\n%s", what, took.Round(time.Second), report)
	for _, lost := range report.Lost[:min(10, len(report.Lost))] {
		t.Errorf("%s: %s", what, lost)
	}
	total := report.Total()
	if others := total.Failures - total.Crossed - total.Refused; harmless && others > 0 {
		t.Errorf("%s: %d requests failed that neither met a GOAWAY nor came too late, must be none", what, others)
	}
}

// steps logs when something was reached.
type steps struct {
	framework.Test
	begin time.Time
}

func (s *steps) reached(what string) {
	s.Helper()
	s.Logf("%5.1f s: %s", time.Since(s.begin).Seconds(), what)
}
