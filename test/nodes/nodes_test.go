// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes runs workloads in real containers on two real nodes, with our programs as pods from our own images and
// manifests. It needs root. With JOBSET_NODES_CLUSTER_DIR, a cluster that runs already is used and left alone.
package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

var (
	shared  *localcluster.Cluster
	core    kubernetes.Interface
	jobsets versioned.Interface
)

func TestMain(m *testing.M) {
	suite.Main("nodes", func() (int, error) { return runSuite(m) })
}

// gates are the gates of features that tests use and that are off by default.
const gates = "--feature-gates=InPlaceRestart=true"

func runSuite(m *testing.M) (int, error) {
	var err error
	shared, err = localcluster.New(".cluster-nodes-e2e", "JOBSET_NODES_CLUSTER_DIR", "CLUSTER_REAL_NODES=2", "CLUSTER_NODES=0",
		"CLUSTER_APISERVER_ARGS="+gates, "CLUSTER_CONTROLLER_ARGS="+gates)
	if err != nil {
		return 0, err
	}
	code, err := shared.Run(m, connect)
	if err != nil || shared.Borrowed {
		return code, err
	}
	return code, nothingRemains(shared)
}

func connect() error {
	config, err := shared.Config()
	if err != nil {
		return err
	}
	if core, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	jobsets, err = versioned.NewForConfig(config)
	return err
}

// nothingRemains returns an error if a cluster that is down has left something on the machine.
func nothingRemains(c *localcluster.Cluster) error {
	remains, err := c.Remains()
	if len(remains) > 0 {
		err = errors.Join(err, fmt.Errorf("the cluster has left: %s", strings.Join(remains, ", ")))
	}
	return err
}

// env is the namespace of one test.
type env struct {
	framework.Test
	namespace string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	namespace, err := core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "nodes-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := core.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return &env{framework.Test{T: t}, namespace.Name}
}

// set is a JobSet whose one replicatedJob, with the name w, runs the test's program. Its pods are spread over the nodes.
func set(name string, jobs, pods int32, args ...string) *jobsetv1alpha2.JobSet {
	labels := map[string]string{jobsetv1alpha2.JobSetNameKey: name}
	return &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{
			Name: "w", Replicas: ptr.To(jobs),
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Completions: ptr.To(pods), Parallelism: ptr.To(pods), BackoffLimit: ptr.To[int32](0),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever,
						Containers:    []corev1.Container{{Name: "main", Image: localcluster.ProgramImage, Args: args}},
						TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
							MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
							LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
						}},
					},
				},
			}},
		}}},
	}
}

func (e *env) create(js *jobsetv1alpha2.JobSet) {
	e.Helper()
	if _, err := jobsets.JobsetV1alpha2().JobSets(e.namespace).Create(e.Context(), js, metav1.CreateOptions{}); err != nil {
		e.Fatal(err)
	}
}

// ended waits until a set has ended in this way, and returns it.
func (e *env) ended(name string, condition string) *jobsetv1alpha2.JobSet {
	e.Helper()
	var js *jobsetv1alpha2.JobSet
	framework.Eventually(e, fmt.Sprintf("%s is %s", name, condition), func(ctx context.Context) (err error) {
		if js, err = jobsets.JobsetV1alpha2().JobSets(e.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(js.Status.Conditions, condition) {
			return fmt.Errorf("conditions are %+v", js.Status.Conditions)
		}
		return nil
	})
	return js
}

// plugin runs a command of the kubectl plugin, which must succeed, and returns what it printed.
func (e *env) plugin(args ...string) string {
	e.Helper()
	var stdout, stderr bytes.Buffer
	cmd := e.pluginCommand(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		e.Fatalf("kubectl jobset %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

func (e *env) pluginCommand(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(e.Context(), shared.Program("kubectl-jobset"), append(args, "--namespace="+e.namespace)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig(), "LC_ALL=C.UTF-8")
	return cmd
}

// follow begins to follow the logs of a set. The function that it returns waits until the set has ended, and returns the logs.
func (e *env) follow(name string) func() string {
	e.Helper()
	var stdout, stderr bytes.Buffer
	cmd := e.pluginCommand("logs", name, "--follow", "--tail=-1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		e.Fatal(err)
	}
	return func() string {
		e.Helper()
		if err := cmd.Wait(); err != nil {
			e.Errorf("kubectl jobset logs %s --follow: %v\n%s%s", name, err, stdout.String(), stderr.String())
		}
		return stdout.String()
	}
}
