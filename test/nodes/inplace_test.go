// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// TestRestartInPlace kills a worker and then an agent among 20 pods, which all go on in place, and then has the same set recreated.
func TestRestartInPlace(t *testing.T) {
	t.Parallel()
	e := newInPlaceEnv(t)
	js := e.inPlaceSet("inplace", sidecarMode, 4, 5, 10, "work")
	e.create(js)
	before, uids := e.together(js, 0), e.uids("inplace")
	victim := hostnames(js)[7]

	start := time.Now()
	e.signal(before[victim], syscall.SIGKILL)
	after := e.together(js, 1)
	t.Logf("20 pods restarted in place in %v after a worker was killed", time.Since(start).Round(100*time.Millisecond))
	for name := range before {
		if before[name] == after[name] {
			t.Errorf("the worker of %s was not restarted", name)
		}
	}
	t.Logf("the agent uses %s", memoryOf(agentOf(victim)))

	start = time.Now()
	e.signal(agentOf(hostnames(js)[13]), syscall.SIGKILL)
	e.together(js, 2)
	t.Logf("20 pods restarted in place in %v after an agent was killed", time.Since(start).Round(100*time.Millisecond))
	if got := e.uids("inplace"); len(got) != 20 || !slices.Equal(got, uids) {
		t.Errorf("pods were recreated: %v, were %v", got, uids)
	}

	start = time.Now()
	e.plugin("restart", "inplace")
	framework.Eventually(t, "all pods are others", func(context.Context) error {
		got := e.uids("inplace")
		if len(got) != 20 || slices.ContainsFunc(got, func(uid string) bool { return slices.Contains(uids, uid) }) {
			return fmt.Errorf("%d pods, not all new", len(got))
		}
		return nil
	})
	e.together(js, 3)
	t.Logf("20 pods were recreated in %v", time.Since(start).Round(100*time.Millisecond))
}

// memoryOf returns what a process has in memory, in kB.
func memoryOf(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	size, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(size)
}

// TestFailureAtTheBarrier has a pod fail again while it waits for one that is slow, in both modes.
func TestFailureAtTheBarrier(t *testing.T) {
	t.Parallel()
	e := newInPlaceEnv(t)
	for _, mode := range []string{sidecarMode, mainMode} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := &env{framework.Test{T: t}, e.namespace}
			js := e.inPlaceSet("barrier-"+mode, mode, 1, 3, 10, "work")
			e.create(js)
			before, uids := e.together(js, 0), e.uids(js.Name)
			names := hostnames(js)

			slow, failing := agentOf(names[0]), names[1]
			e.signal(slow, syscall.SIGSTOP)
			e.signal(before[failing], syscall.SIGKILL)
			e.agentFollows(js, failing, 0)
			if mode == sidecarMode {
				// In the other mode kubelet would wait for ten seconds.
				last := agentOf(failing)
				e.signal(last, syscall.SIGKILL)
				e.agentFollows(js, failing, last)
			}
			if got := worker(names[0]); got != before[names[0]] {
				t.Errorf("the worker of the slow pod has the process id %d, had %d", got, before[names[0]])
			}
			for _, name := range names[1:] {
				if got := worker(name); got != 0 && got != before[name] {
					t.Errorf("the worker of %s begins although a pod has not followed", name)
				}
			}
			e.signal(slow, syscall.SIGCONT)
			after := e.together(js, 1)
			if after[names[0]] == before[names[0]] || !slices.Equal(e.uids(js.Name), uids) {
				t.Errorf("the slow pod has not followed, or pods were recreated")
			}
			for _, name := range names {
				e.signal(after[name], syscall.SIGTERM)
			}
			e.ended(js.Name, jobsetv1alpha2.JobSetCompleted)
		})
	}
}

// agentFollows waits until a pod has written the first attempt after the start, by an agent that is not the last one.
func (e *env) agentFollows(js *jobsetv1alpha2.JobSet, hostname string, last int) {
	e.Helper()
	framework.Eventually(e, hostname+" is at attempt 1", func(context.Context) error {
		if pid := agentOf(hostname); pid == 0 || pid == last {
			return errors.New("no new agent runs")
		}
		if got := e.attemptOf(js.Name, hostname); got != "1" {
			return fmt.Errorf("it is at %q", got)
		}
		return nil
	})
}

// TestRestartsHaveALimit has workers fail at once, in both modes, and logs how fast they begin again.
func TestRestartsHaveALimit(t *testing.T) {
	t.Parallel()
	e := newInPlaceEnv(t)
	for _, mode := range []string{sidecarMode, mainMode} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := &env{framework.Test{T: t}, e.namespace}
			js := e.inPlaceSet("limit-"+mode, mode, 1, 2, 2, "exit", "3")
			e.create(js)
			got := e.ended(js.Name, jobsetv1alpha2.JobSetFailed)
			condition := got.Status.Conditions[slices.IndexFunc(got.Status.Conditions, func(c metav1.Condition) bool { return c.Type == jobsetv1alpha2.JobSetFailed })]
			if condition.Reason != "ReachedMaxRestarts" || got.Status.Restarts != 0 {
				t.Errorf("%d restarts, condition %+v", got.Status.Restarts, condition)
			}
			for _, a := range got.Status.Attempts {
				t.Logf("attempt %d lasted %v", a.Number, a.EndTime.Sub(a.RequestTime.Time).Round(100*time.Millisecond))
			}
			if out := e.plugin("why", js.Name); !strings.Contains(out, "MaxRestartsReached") || strings.Contains(out, "exit code 137") {
				t.Errorf("why does not name the limit, or blames a container that was removed:\n%s", out)
			}
		})
	}
}

// outageVariable makes kube-apiserver itself stop, for so many seconds: no other test may run then.
const outageVariable = "JOBSET_NODES_OUTAGE"

// TestServersAwayDuringRestart has a worker fail while no agent reaches a server. Nothing begins until they do.
func TestServersAwayDuringRestart(t *testing.T) {
	t.Parallel()
	e := newInPlaceEnv(t)
	js := e.inPlaceSet("outage", sidecarMode, 1, 3, 10, "work")
	e.create(js)
	before, uids, names := e.together(js, 0), e.uids("outage"), hostnames(js)
	away, lasts := e.outage(before)
	away(true)
	last := agentOf(names[1])
	e.signal(before[names[1]], syscall.SIGKILL)
	framework.EventuallyNoProblem(t, func() string {
		if pid := agentOf(names[1]); pid == 0 || pid == last {
			return "no new agent runs"
		}
		return ""
	})
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if worker(names[0]) != before[names[0]] || worker(names[1]) != 0 || worker(names[2]) != before[names[2]] {
			t.Fatalf("workers %d, %d, %d; at first %v", worker(names[0]), worker(names[1]), worker(names[2]), before)
		}
	}
	start := time.Now()
	away(false)
	e.together(js, 1)
	t.Logf("all workers began %v after the end of an outage of %v", time.Since(start).Round(100*time.Millisecond), lasts)
	if !slices.Equal(e.uids("outage"), uids) {
		t.Error("pods were recreated")
	}
}

// outage returns what takes the servers away from pods, and how long they stay away.
func (e *env) outage(workers map[string]int) (func(away bool), time.Duration) {
	e.Helper()
	seconds, err := strconv.Atoi(os.Getenv(outageVariable))
	if err != nil {
		var networks []*network
		for _, pid := range workers {
			networks = append(networks, e.networkOf(pid))
		}
		return func(away bool) {
			for _, n := range networks {
				e.servers(n, away)
			}
		}, 5 * time.Second
	}
	content, err := os.ReadFile(filepath.Join(shared.Dir, "pids", "kube-apiserver.pid"))
	if err != nil {
		e.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	return func(away bool) {
		if away {
			e.signal(pid, syscall.SIGSTOP)
		} else {
			e.signal(pid, syscall.SIGCONT)
		}
	}, time.Duration(seconds) * time.Second
}

// TestNodeWithoutRestartRules asks for a node whose kubelet is too old for a restart of all containers.
func TestNodeWithoutRestartRules(t *testing.T) {
	t.Parallel()
	e := newInPlaceEnv(t)
	const label = "jobset-tests/old"
	// Without a host name, the node is none that pods of other tests are spread over.
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("10"),
	}
	node, err := core.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace, Labels: map[string]string{label: e.namespace}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: label, Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{Allocatable: size, Capacity: size},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := core.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	js := e.inPlaceSet("old", sidecarMode, 1, 1, 0, "work")
	spec := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	spec.NodeSelector = map[string]string{label: e.namespace}
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	e.create(js)
	framework.EventuallyNoProblem(t, func() string {
		if out := e.plugin("why", "old"); !strings.Contains(out, "RestartRulesMissing") {
			return out
		}
		return ""
	})
}
