// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/report"
)

// restartInPlace restarts the pods of a set where they are, with simulated agents in them, and then recreates the same pods.
func restartInPlace(ctx context.Context, r *runner) error {
	for range r.Runs {
		if err := r.inSpace(ctx, watchedAll, true, lifeInPlace); err != nil {
			return err
		}
	}
	return nil
}

func lifeInPlace(ctx context.Context, s *space) error {
	jobs, pods := s.Sizes.InPlaceJobs, s.Sizes.InPlacePods
	if _, err := s.measure(ctx, "start", func(ctx context.Context) error {
		if err := s.createSet(ctx, s.inPlaceSet(jobs, pods)); err != nil {
			return err
		}
		return s.untilPlaced(ctx, jobs, pods, 0)
	}); err != nil {
		return err
	}
	if err := s.restartWithAgents(ctx, jobs*pods); err != nil {
		return err
	}
	phase, err := s.measure(ctx, "recreation", func(ctx context.Context) error {
		restart := &batchv1alpha1.JobSetRestart{ObjectMeta: objectMeta(setName, s.name)}
		if _, err := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).Restart(ctx, setName, restart, metav1.CreateOptions{}); err != nil {
			return err
		}
		return s.untilPlaced(ctx, jobs, pods, 1)
	})
	if err != nil {
		return err
	}
	s.addPerPod(phase, jobs*pods)
	return nil
}

// restartWithAgents starts agents, lets a container fail, and is done when all agents have lifted their barriers once more.
func (s *space) restartWithAgents(ctx context.Context, pods int) error {
	before, err := s.Cluster.Memory()
	if err != nil {
		return err
	}
	fleet, err := s.newAgents(ctx)
	if err != nil {
		return err
	}
	defer fleet.stop()
	phase, err := s.measure(ctx, "agents", func(ctx context.Context) error { return fleet.start(ctx, s.Timeout) })
	if err != nil {
		return err
	}
	if err := s.addServerMemory(before, phase, "agent", pods); err != nil {
		return err
	}
	var noticed time.Duration
	phase, err = s.measure(ctx, "restart in place", func(ctx context.Context) error {
		begin := time.Now()
		fleet.failOne()
		if err := s.sets.untilAny(ctx, "pods are to restart", func(js *jobsetv1alpha2.JobSet) bool {
			return js.Status.PreviousInPlaceRestartAttempt != nil
		}); err != nil {
			return err
		}
		noticed = time.Since(begin)
		return fleet.untilLifted(ctx, 1, s.Timeout)
	})
	if err != nil {
		return err
	}
	phase.Add("wall until the status lets pods restart", report.UnitSeconds, noticed.Seconds())
	s.addPerPod(phase, pods)
	return s.checkFirstCause(ctx, fleet.failing())
}

// addServerMemory adds the growth of resident memory of the API servers for each of n clients.
func (r *runner) addServerMemory(before map[string]int64, to *report.Phase, client string, n int) error {
	after, err := r.Cluster.Memory()
	if err != nil {
		return err
	}
	for _, program := range []string{"kube-apiserver", "jobset-apiserver"} {
		if after[program] > 0 {
			to.Add("memory of "+program+" for each "+client, report.UnitKiB, float64(after[program]-before[program])/float64(n)/1024)
		}
	}
	return nil
}

// addPerPod adds the CPU time, and the writes, of each pod.
func (s *space) addPerPod(phase *report.Phase, pods int) {
	for _, program := range []string{"total", "kube-apiserver", "jobset-apiserver", "jobset-controller"} {
		phase.Add("CPU of "+program+" for each pod", report.UnitMillis, 1000*phase.Last("cpu/"+program)/float64(pods))
	}
	writes := 0.0
	for _, server := range []string{"kube-apiserver", "jobset-apiserver"} {
		for _, call := range []string{"APPLY pods", "PATCH pods", "PATCH pods/status", "POST pods", "POST pods/binding", "DELETE pods", "PUT pods/status", "PUT jobsets/status"} {
			writes += phase.Last("calls/" + server + "/" + call)
		}
	}
	phase.Add("writes for each pod", report.UnitCount, writes/float64(pods))
}

// checkFirstCause returns an error unless the history of the set names the container that failed.
func (s *space) checkFirstCause(ctx context.Context, pod string) error {
	js, err := s.Cluster.JobSets.JobsetV1alpha2().JobSets(s.name).Get(ctx, setName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if n := len(js.Status.Attempts); n != 2 || js.Status.Attempts[0].FirstCause == nil || js.Status.Attempts[0].FirstCause.Pod != pod {
		return fmt.Errorf("the attempts %+v do not name pod %s as the first cause", js.Status.Attempts, pod)
	}
	return nil
}

// inPlaceSet is a set whose pods restart all of their containers when one fails.
func (s *space) inPlaceSet(jobs, pods int) *jobsetv1alpha2.JobSet {
	js := s.set(setName, jobs, running)
	js.Spec.FailurePolicy.RestartStrategy = jobsetv1alpha2.RestartStrategyInPlaceRestart
	spec := &js.Spec.ReplicatedJobs[0].Template.Spec
	spec.Parallelism, spec.Completions = ptr.To(int32(pods)), ptr.To(int32(pods)) //nolint:gosec // a small number
	spec.BackoffLimit, spec.PodReplacementPolicy = ptr.To[int32](math.MaxInt32), ptr.To(batchv1.Failed)
	main := &spec.Template.Spec.Containers[0]
	main.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
	main.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn, Values: []int32{0}},
	}}
	return js
}
