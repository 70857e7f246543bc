// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster has a test for every example that upstream gives its users (spec §7.1) and for every one of its
// end-to-end tests (§7.4), named after the row. They run in a whole control plane of their own, in which simulated nodes
// play the pods: nothing is executed, so what happens inside of containers is checked at the pods that they would be
// started from. The gates RestartJob, ElasticJobSet and InPlaceRestart are on.
package cluster

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

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

const gates = "--feature-gates=RestartJob=true,ElasticJobSet=true,InPlaceRestart=true"

// cluster is the control plane of the package.
type cluster struct {
	root, dir, programs, kubectl string

	config  *rest.Config
	kube    kubernetes.Interface
	jobSets versioned.Interface
}

var shared *cluster

func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// runSuite stops what it started whatever ends the tests.
func runSuite(m *testing.M) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "jobset-parity-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := filepath.Abs("../../..")
	if err != nil {
		return 0, err
	}
	shared = &cluster{root: root, dir: filepath.Join(dir, "cluster"), programs: filepath.Join(dir, "bin")}
	if err := shared.build(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.script("down")) }()
	if err := shared.script("up"); err != nil {
		return 0, err
	}
	if err := shared.connect(); err != nil {
		return 0, err
	}
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	select {
	case code = <-done:
		return code, nil
	case <-ctx.Done():
		return 0, errors.New("interrupted")
	}
}

// build makes our two programs and finds those of the control plane.
func (c *cluster) build(ctx context.Context) error {
	for program, path := range map[string]string{"jobset-apiserver": "./cmd/apiserver", "jobset-controller": "./cmd/controller"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(c.programs, program), path)
		cmd.Dir = c.root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w: %s", program, err, out)
		}
	}
	binaries := os.Getenv("JOBSET_BINARIES")
	if binaries == "" {
		cmd := exec.CommandContext(ctx, filepath.Join(c.root, "hack", "ensure-binaries.sh"))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		binaries = strings.TrimSpace(string(out))
	}
	c.kubectl = filepath.Join(binaries, "kubectl")
	return nil
}

// script calls hack/cluster.sh for this cluster. The API of pod groups is switched on in kube-apiserver for the rows of
// workload-aware scheduling; the scheduler does not act on it.
func (c *cluster) script(args ...string) error {
	cmd := exec.Command(filepath.Join(c.root, "hack", "cluster.sh"), args...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "CLUSTER_DIR="+c.dir, "CLUSTER_BIN="+c.programs, "CLUSTER_NODES=8",
		"CLUSTER_APISERVER_ARGS="+gates, "CLUSTER_CONTROLLER_ARGS="+gates,
		"CLUSTER_KUBE_APISERVER_ARGS=--feature-gates=GenericWorkload=true --runtime-config=scheduling.k8s.io/v1alpha2=true")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("hack/cluster.sh %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (c *cluster) connect() (err error) {
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig()); err != nil {
		return err
	}
	c.config.QPS = -1
	if c.kube, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.jobSets, err = versioned.NewForConfig(c.config)
	return err
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }
