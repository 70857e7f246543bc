// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of all choices")

// newDice returns the source of the choices of one test.
func newDice(t *testing.T) *rand.Rand {
	t.Helper()
	t.Logf("repeat the choices with -seed=%d", *seed)
	return rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // choices, not secrets
}

// cluster is a running control plane whose controllers belong to the tests.
type cluster struct {
	root, dir string
	env       []string
	config    *rest.Config
	kube      kubernetes.Interface
	jobSets   versioned.Interface
}

// shared is the control plane of this package.
var shared *cluster

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (code int, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return 0, err
	}
	shared = &cluster{root: root, dir: filepath.Join(root, ".cluster-faults"), env: []string{"CLUSTER_APISERVER_ARGS=--shutdown-delay-duration=2s"}}
	if dir := os.Getenv("JOBSET_FAULTS_CLUSTER_DIR"); dir != "" {
		shared.dir = dir
		if err := shared.connect(); err != nil {
			return 0, err
		}
		return m.Run(), nil
	}
	// What an earlier run left behind goes first; whatever ends this one takes the control plane with it.
	interrupted, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := shared.script("down"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.script("down")) }()
	for _, command := range [][]string{{"up"}, {"stop", "controller"}} {
		if err := shared.script(command...); err != nil {
			return 0, err
		}
	}
	if err := shared.connect(); err != nil {
		return 0, err
	}
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	select {
	case code = <-done:
		return code, nil
	case <-interrupted.Done():
		return 0, errors.New("interrupted")
	}
}

// script calls hack/cluster.sh for this cluster.
func (c *cluster) script(args ...string) error {
	cmd := exec.Command(filepath.Join(c.root, "hack", "cluster.sh"), args...)
	cmd.Dir = c.root
	cmd.Env = append(append(os.Environ(), "CLUSTER_DIR="+c.dir), c.env...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("hack/cluster.sh %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}

// connect makes clients of the administrator, who is in nobody's way.
func (c *cluster) connect() error {
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "kubeconfig")); err != nil {
		return err
	}
	c.config.QPS = -1
	if c.kube, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.jobSets, err = versioned.NewForConfig(c.config)
	return err
}

// restartAPIServer stops our API server, which has JobSets and their store in one process, and starts it again.
func (c *cluster) restartAPIServer() error {
	if err := c.script("stop", "apiserver"); err != nil {
		return err
	}
	return c.script("start", "apiserver")
}

// program is the path of a program of ours, as the cluster uses it.
func (c *cluster) program(name string) string {
	if dir := os.Getenv("CLUSTER_BIN"); dir != "" {
		return filepath.Join(dir, name)
	}
	return filepath.Join(c.root, "bin", name)
}
