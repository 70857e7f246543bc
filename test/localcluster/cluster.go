// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localcluster lets test packages have a whole local cluster of hack/cluster.sh: a Kubernetes control plane with
// simulated nodes and our two programs. A package starts its cluster before its first test and stops it after the last one.
package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
)

// ShortShutdown is a flag of jobset-apiserver that spares tests that stop the server the time in which load balancers
// learn of it.
const ShortShutdown = "--shutdown-delay-duration=2s"

// KubeGOGC is GOGC for the programs of Kubernetes in tests, which otherwise spend a good part of their time on garbage
// collection. Benchmarks and clusters of users do not set it.
const KubeGOGC = "400"

// KubeRuntime returns the environment of the same programs, with GOGC as given. The kernel takes back memory that they free when it
// needs it, and not at once, which is a quarter of what kube-apiserver does while it is idle.
func KubeRuntime(gogc string) map[string]string {
	return map[string]string{"GOGC": gogc, "GODEBUG": "madvdontneed=0"}
}

// Cluster is a cluster of hack/cluster.sh.
type Cluster struct {
	// Root is the checkout.
	Root string
	// Dir has the state, the logs and the kubeconfig.
	Dir string
	// Env has the variables of hack/cluster.sh as NAME=value.
	Env []string
	// Borrowed says that the cluster ran before and goes on after the tests.
	Borrowed bool
	// started says that this program has started it.
	started bool
}

// New returns the cluster with that directory name in the checkout. If the environment variable names the directory of
// a running cluster, that one is borrowed.
func New(name, variable string, env ...string) (*Cluster, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Root: root, Dir: filepath.Join(root, name), Env: env}
	if dir := os.Getenv(variable); dir != "" {
		c.Dir, c.Borrowed = dir, true
	}
	return c, nil
}

// Root finds the checkout that the working directory of the tests is part of.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "hack", "cluster.sh")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("hack/cluster.sh is not in this directory or one above it: run the tests in the checkout")
		}
		dir = parent
	}
}

// TestBinaries returns the directory with the programs of the control plane and those that tests need besides. They are
// built unless they are in the cache.
func TestBinaries(root string) (string, error) { return binaries(root, "--tests") }

// binaries returns the directory with the programs that hack/ensure-binaries.sh provides with the arguments.
func binaries(root string, args ...string) (string, error) {
	if dir := os.Getenv("JOBSET_BINARIES"); dir != "" {
		return dir, nil
	}
	cmd := exec.Command(filepath.Join(root, "hack", "ensure-binaries.sh"), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// Run runs the tests of a package in the cluster. Ready is called once it runs. What an earlier run left behind goes
// first; whatever ends this one takes the cluster with it, unless it is borrowed.
func (c *Cluster) Run(m *testing.M, ready func() error) (code int, err error) {
	// Without a test to run, there is no need to start anything.
	if err := suite.Check(m); err != nil {
		return 0, err
	}
	if c.Borrowed {
		if err := ready(); err != nil {
			return 0, err
		}
		return m.Run(), nil
	}
	interrupted, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := c.Stop(false); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Stop(err == nil && code == 0)) }()
	if err := c.Script("up"); err != nil {
		fmt.Fprintln(os.Stderr, "starting the cluster once more:", err)
		if err := errors.Join(c.Stop(false), c.Script("up")); err != nil {
			return 0, err
		}
	}
	if err := ready(); err != nil {
		return 0, err
	}
	return suite.Run(interrupted, m)
}

// Stop removes the cluster. Unless all went well, its logs are kept, and the script prints where. It is an error if simulated nodes
// deleted pods that they must not delete.
func (c *Cluster) Stop(good bool) error {
	var err error
	if c.started {
		err = c.checkKwok()
		c.started = false
	}
	if good && err == nil {
		return c.Script("down")
	}
	return errors.Join(err, c.Script("down", "--keep-logs"))
}

// Script calls hack/cluster.sh for this cluster.
func (c *Cluster) Script(args ...string) error {
	c.started = c.started || args[0] == "up"
	cmd := exec.Command(filepath.Join(c.Root, "hack", "cluster.sh"), args...)
	cmd.Dir = c.Root
	cmd.Env = append(append(os.Environ(), "CLUSTER_DIR="+c.Dir, "CLUSTER_KUBE_GOGC="+KubeGOGC), c.Env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("hack/cluster.sh %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Kubeconfig is the path of the administrator's.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Config is the config of a client of the administrator, without a limit on its requests.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Program is the path of one of our programs, as the cluster uses it.
func (c *Cluster) Program(name string) string {
	if dir := os.Getenv("CLUSTER_BIN"); dir != "" {
		return filepath.Join(dir, name)
	}
	return filepath.Join(c.Root, "bin", name)
}
