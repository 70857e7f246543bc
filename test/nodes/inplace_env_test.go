// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// Modes of the agent, which are the names of examples.
const (
	sidecarMode = "sidecar"
	mainMode    = "main-container"
)

var restartPolicy sync.Once

// newInPlaceEnv returns a namespace whose pods may run the agent, with the manifests that users apply.
func newInPlaceEnv(t *testing.T) *env {
	e := newEnv(t)
	restartPolicy.Do(func() { e.kubectl("apply", "-f", example("admission-policy")) })
	e.kubectl("apply", "-f", example("service-account"))
	return e
}

func example(name string) string {
	return filepath.Join(shared.Root, "artifacts", "examples", "in-place-restart", name+".yaml")
}

// kubectl runs kubectl in the namespace, which must succeed, and returns what it printed.
func (e *env) kubectl(args ...string) string {
	e.Helper()
	binaries, err := localcluster.TestBinaries(shared.Root)
	if err != nil {
		e.Fatal(err)
	}
	cmd := exec.CommandContext(e.Context(), filepath.Join(binaries, "kubectl"), append(args, "--kubeconfig="+shared.Kubeconfig(), "--namespace="+e.namespace)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		e.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// inPlaceSet returns the example of the mode with another size and worker.
func (e *env) inPlaceSet(name, mode string, jobs, pods, maxRestarts int32, worker ...string) *jobsetv1alpha2.JobSet {
	e.Helper()
	content, err := os.ReadFile(example(mode))
	if err != nil {
		e.Fatal(err)
	}
	js := &jobsetv1alpha2.JobSet{}
	if err := yaml.UnmarshalStrict(content, js); err != nil {
		e.Fatal(err)
	}
	js.Name, js.Spec.FailurePolicy.MaxRestarts = name, maxRestarts
	rj := &js.Spec.ReplicatedJobs[0]
	rj.Name, rj.Replicas = "w", &jobs
	rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = &pods, &pods
	spec := &rj.Template.Spec.Template.Spec
	spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	spec.InitContainers[0].Image = localcluster.AgentImage
	c := &spec.Containers[0]
	c.Image = localcluster.ProgramImage
	if mode == sidecarMode {
		c.Command, c.Args = append([]string{"/program"}, worker...), nil
		return js
	}
	for i := range c.Env {
		if c.Env[i].Name == "WORKER_COMMAND" {
			c.Env[i].Value = "/program " + strings.Join(worker, " ")
		}
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "SHELL", Value: "/program"})
	return js
}

// process is one in a container of a pod with this hostname.
type process struct {
	pid  int
	args []string
}

// processesOf returns those of the pod on this machine, which has the nodes.
func processesOf(hostname string) (found []process) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), "HOSTNAME="+hostname) {
			continue
		}
		if cmdline, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline")); err == nil && len(cmdline) > 0 {
			found = append(found, process{pid, strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")})
		}
	}
	return found
}

// worker returns the process id of the worker of the pod; 0 if none runs that has begun its work.
func worker(hostname string) int {
	return find(hostname, func(p process) bool {
		if p.args[0] != "/program" || len(p.args) < 2 || p.args[1] != "work" {
			return false
		}
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid))
		return err == nil && strings.TrimSpace(string(name)) == "working"
	})
}

// agentOf returns the process id of the agent of the pod; 0 if none runs.
func agentOf(hostname string) int {
	return find(hostname, func(p process) bool { return strings.HasSuffix(p.args[0], "/jobset-restart-agent") })
}

func find(hostname string, is func(process) bool) int {
	list := processesOf(hostname)
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i].pid
	}
	return 0
}

// signal sends a signal to a process, which must run.
func (e *env) signal(pid int, s syscall.Signal) {
	e.Helper()
	if pid == 0 {
		e.Fatal("the process does not run")
	}
	if err := syscall.Kill(pid, s); err != nil {
		e.Fatal(err)
	}
}

// hostnames are the hostnames of the pods of a set, whose replicatedJob is w.
func hostnames(js *jobsetv1alpha2.JobSet) (names []string) {
	rj := &js.Spec.ReplicatedJobs[0]
	for job := range *rj.Replicas {
		for pod := range *rj.Template.Spec.Parallelism {
			names = append(names, fmt.Sprintf("%s-w-%d-%d", js.Name, job, pod))
		}
	}
	return names
}

func (e *env) podsOf(name string) []corev1.Pod {
	e.Helper()
	list, err := core.CoreV1().Pods(e.namespace).List(e.Context(), metav1.ListOptions{LabelSelector: jobsetv1alpha2.JobSetNameKey + "=" + name})
	if err != nil {
		e.Fatal(err)
	}
	return list.Items
}

// uids returns those of the pods of a set.
func (e *env) uids(name string) (uids []string) {
	e.Helper()
	for _, pod := range e.podsOf(name) {
		uids = append(uids, string(pod.UID))
	}
	slices.Sort(uids)
	return uids
}

// together waits until all pods of a set have reached an attempt and their workers run, and returns the process ids of the workers.
func (e *env) together(js *jobsetv1alpha2.JobSet, attempt int32) map[string]int {
	e.Helper()
	workers := map[string]int{}
	framework.Eventually(e, fmt.Sprintf("all workers of %s are at attempt %d", js.Name, attempt), func(ctx context.Context) error {
		got, err := jobsets.JobsetV1alpha2().JobSets(e.namespace).Get(ctx, js.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if current := got.Status.CurrentInPlaceRestartAttempt; current == nil || *current != attempt {
			return fmt.Errorf("the current attempt is %d, of %+v", ptr.Deref(current, -1), got.Status)
		}
		for _, name := range hostnames(js) {
			if workers[name] = worker(name); workers[name] == 0 {
				return fmt.Errorf("no worker runs in %s", name)
			}
		}
		return nil
	})
	return workers
}

// attemptOf returns the attempt that the pod with the hostname has written.
func (e *env) attemptOf(js, hostname string) string {
	e.Helper()
	for _, pod := range e.podsOf(js) {
		if pod.Spec.Hostname == hostname {
			return pod.Annotations[jobsetv1alpha2.InPlaceRestartAttemptKey]
		}
	}
	return "no pod"
}

// network is the network of a pod, which outlives its containers.
type network struct{ file *os.File }

func (e *env) networkOf(pid int) *network {
	e.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = file.Close() })
	return &network{file}
}

// servers lets the pod send nothing to ports of API servers, or ends that.
func (e *env) servers(n *network, away bool) {
	e.Helper()
	operation := "--delete"
	if away {
		operation = "--insert"
	}
	cmd := exec.Command("nsenter", "--net=/proc/self/fd/3", "iptables", "--wait", operation, "OUTPUT", "--protocol", "tcp", "--dport", "443", "--jump", "DROP")
	cmd.ExtraFiles = []*os.File{n.file}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		e.Fatalf("iptables: %v\n%s", err, output.String())
	}
}
