// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// benchPoolKey is the label of the nodes of this scenario. Its value is benchPool, or anchorPool for one more node,
	// which has a rack of its own. benchRackKey is the label with the racks.
	benchPoolKey = "bench.jobset-apiserver.io/pool"
	benchPool    = "place"
	anchorPool   = "anchor"
	benchRackKey = "bench.jobset-apiserver.io/rack"
	// holderPriority is the name of the PriorityClass of pods that hold racks.
	holderPriority = "bench-holder"
)

// placedRacks is how many racks the nodes of place fill.
func (s Sizes) placedRacks() int { return s.PlaceNodes / s.PlaceRackNodes }

// placedJobs is how many Jobs the set of place has: one for each rack at most.
func (s Sizes) placedJobs() int { return min(s.PlaceJobs, s.placedRacks()) }

// createRacks creates the nodes, waits until they are ready, and returns the rack of each by the name of the node.
// Nodes that do not fill a rack are left out.
func (r *runner) createRacks(ctx context.Context) (map[string]string, error) {
	racks := map[string]string{"bench-" + anchorPool: anchorPool}
	for rack := range r.Sizes.placedRacks() {
		for i := range r.Sizes.PlaceRackNodes {
			racks[fmt.Sprintf("bench-%d-%d", rack, i)] = fmt.Sprintf("rack-%d", rack)
		}
	}
	names := slices.Collect(maps.Keys(racks))
	r.Log("%s: creating %d nodes", r.to.Name, len(names))
	if err := all(ctx, len(names), parallel, func(i int) error {
		_, err := r.Cluster.Kube.CoreV1().Nodes().Create(ctx, benchNode(names[i], racks[names[i]]), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // of an earlier run
			return nil
		}
		return err
	}); err != nil {
		return nil, err
	}
	ready := 0
	err := wait.PollUntilContextTimeout(ctx, pollInterval, r.Timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		ready, err = r.readyNodes(ctx)
		return ready == len(names), err
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until %d nodes are ready: %d are: %w", len(names), ready, err)
	}
	return racks, nil
}

// benchNode has the size of the nodes of a local cluster.
func benchNode(name, rack string) *corev1.Node {
	pool := benchPool
	if rack == anchorPool {
		pool = anchorPool
	}
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"), corev1.ResourcePods: resource.MustParse("250"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{"type": "kwok", corev1.LabelHostname: name, benchPoolKey: pool, benchRackKey: rack},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
		},
		Status: corev1.NodeStatus{Allocatable: size, Capacity: size},
	}
}

func (r *runner) readyNodes(ctx context.Context) (int, error) {
	nodes, err := r.Cluster.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: benchPoolKey, ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	ready := 0
	for i := range nodes.Items {
		if len(nodes.Items[i].Spec.Taints) > 0 { // not ready, or not known yet
			continue
		}
		for _, c := range nodes.Items[i].Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready, nil
}

func (r *runner) deleteRacks(ctx context.Context) error {
	return r.Cluster.Kube.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: benchPoolKey})
}

// holdRacks puts a small pod of higher priority, of another set, into each rack. The controller takes these racks for
// taken; the scheduler keeps only pods of equal priority apart.
func (p *placing) holdRacks(ctx context.Context, s *space) error {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: holderPriority}, Value: 1000}
	if _, err := s.Cluster.Kube.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	js := s.placedSet(placeWithout, 1, s.Sizes.placedRacks())
	template := &js.Spec.ReplicatedJobs[0].Template.Spec.Template
	template.Labels = map[string]string{"app": holderPriority}
	template.Spec.PriorityClassName = holderPriority
	template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: benchRackKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: template.Labels},
	}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	pods, err := s.watchPods(watching)
	if err != nil {
		return err
	}
	if err := s.createSet(ctx, js); err != nil {
		return err
	}
	return pods.until(ctx, "a pod in each rack is ready", s.Sizes.placedRacks(), podReady)
}

// check returns an error unless the Jobs got their racks as the mode says, and no two have the same.
func (p *placing) check(ctx context.Context, s *space, mode placeMode) error {
	if mode == placeWithout {
		return nil
	}
	if err := s.checkModes(mode); err != nil {
		return err
	}
	list, err := s.Cluster.Kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	rackOf, jobIn := map[string]string{}, map[string]string{}
	for i := range list.Items {
		pod := &list.Items[i]
		job, rack := pod.Labels[batchv1.JobNameLabel], p.racks[pod.Spec.NodeName]
		if pod.DeletionTimestamp != nil || rack == "" {
			continue
		}
		if other, found := jobIn[rack]; found && other != job {
			return fmt.Errorf("mode %s: rack %s has pods of %s and %s", mode, rack, job, other)
		}
		if other, found := rackOf[job]; found && other != rack {
			return fmt.Errorf("mode %s: Job %s has pods in %s and %s", mode, job, rack, other)
		}
		rackOf[job], jobIn[rack] = rack, job
	}
	if len(rackOf) != s.Sizes.placedJobs() {
		return fmt.Errorf("mode %s: %d of %d Jobs have pods in racks", mode, len(rackOf), s.Sizes.placedJobs())
	}
	return nil
}

// checkModes returns an error unless our controller created all Jobs in a mode. Upstream's webhooks change the pods, not the Jobs.
func (s *space) checkModes(mode placeMode) error {
	n, _ := s.jobs.count(func(job *batchv1.Job) bool { return hasMode(job, mode) })
	if n == s.Sizes.placedJobs() || s.Cluster.Upstream {
		return nil
	}
	return fmt.Errorf("%d of %d Jobs were created in the mode %s; are the feature gates ExclusivePlacement of both programs on?", n, s.Sizes.placedJobs(), mode)
}

// hasMode reports whether a Job was created in a mode: with its rack in the node selector, or with affinities by which
// the scheduler finds one.
func hasMode(job *batchv1.Job, mode placeMode) bool {
	pod := &job.Spec.Template.Spec
	attracted := pod.Affinity != nil && pod.Affinity.PodAffinity != nil
	return (mode == placeAffinity) == attracted && (mode == placeExclusive) == (pod.NodeSelector[benchRackKey] != "")
}

// liveHeap returns the bytes in the heap of the controller without garbage; 0 for a cluster that is not on this machine.
func (s *space) liveHeap(ctx context.Context) (float64, error) {
	if s.Cluster.Dir == "" {
		return 0, nil
	}
	return s.Cluster.LiveHeap(ctx, "jobset-controller")
}
