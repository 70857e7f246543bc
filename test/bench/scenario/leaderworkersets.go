// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/test/bench/cluster"
)

// updatedAtATime is how many groups are replaced at a time.
const updatedAtATime = 10

// leaderWorkerSets compares a set of groups with the same pods in StatefulSets, one for each group, that a client
// updates a few at a time. Those pods have as many labels, annotations and variables as those of groups, and one
// headless Service, too.
func leaderWorkerSets(ctx context.Context, r *runner) error {
	for range r.Runs {
		for _, part := range []struct {
			name string
			pods podsInGroups
		}{{"statefulsets", statefulSets{}}, {"groups", groupsOfSet{}}} {
			if err := r.inSpace(ctx, unwatched, false, func(ctx context.Context, s *space) error {
				return s.liveOfGroups(ctx, part.name, part.pods)
			}); err != nil {
				return err
			}
		}
	}
	return r.inSpace(ctx, unwatched, true, func(ctx context.Context, s *space) error { return s.restGroups(ctx) })
}

// podsInGroups are pods in groups, made by one way or the other.
type podsInGroups interface {
	// create creates n groups.
	create(ctx context.Context, s *space, n int) error
	// update lets the pods of all groups run another image, a few groups at a time. It may wait by ready, which waits until all pods are.
	update(ctx context.Context, s *space, image string, n int, ready func(ctx context.Context) error) error
	// restart replaces all pods of a group.
	restart(ctx context.Context, s *space, group int) error
	// scale changes the number of groups.
	scale(ctx context.Context, s *space, from, to int) error
}

// liveOfGroups measures the life of groups: creation, an update of all, the restart of one, and other numbers of groups.
func (s *space) liveOfGroups(ctx context.Context, name string, pods podsInGroups) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	shown, err := s.watchPods(watching)
	if err != nil {
		return err
	}
	n, all := s.Sizes.ServingGroups, s.Sizes.ServingGroups*s.Sizes.ServingPods
	known := map[types.UID]bool{}
	// replaced waits until so many pods are others than those known before, and all are ready.
	replaced := func(ctx context.Context, want int) error {
		if err := shown.untilFresh(ctx, known, want); err != nil {
			return err
		}
		return shown.until(ctx, "all pods are ready", all, podReady)
	}
	step := func(phase string, others int, work func(ctx context.Context) error) error {
		known = shown.uids()
		_, err := s.measure(ctx, name+": "+phase, func(ctx context.Context) error {
			if err := work(ctx); err != nil {
				return err
			}
			return replaced(ctx, others)
		})
		return err
	}
	if err := step("create", all, func(ctx context.Context) error { return pods.create(ctx, s, n) }); err != nil {
		return err
	}
	if err := step("update", all, func(ctx context.Context) error {
		done := 0
		return pods.update(ctx, s, "busybox:2", n, func(ctx context.Context) error {
			done += min(updatedAtATime, n-done)
			return replaced(ctx, done*s.Sizes.ServingPods)
		})
	}); err != nil {
		return err
	}
	if err := step("restart of one group", s.Sizes.ServingPods, func(ctx context.Context) error { return pods.restart(ctx, s, n/2) }); err != nil {
		return err
	}
	return s.scaleGroups(ctx, name, pods, shown)
}

// restGroups watches groups that do nothing.
func (s *space) restGroups(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	shown, err := s.watchPods(watching)
	if err != nil {
		return err
	}
	n := s.Sizes.RestGroups
	if _, err := s.measure(ctx, "create groups at rest", func(ctx context.Context) error {
		if err := s.createGroups(ctx, n, 2); err != nil {
			return err
		}
		return shown.until(ctx, "all pods are ready", 2*n, podReady)
	}); err != nil {
		return err
	}
	if err := cluster.Pause(ctx, 5*time.Second); err != nil { // the last status is on its way
		return err
	}
	_, err = s.measure(ctx, "at rest", func(ctx context.Context) error {
		return cluster.Pause(ctx, time.Duration(s.Sizes.RestSeconds)*time.Second)
	})
	return err
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// groupsOfSet are the groups of one LeaderWorkerSet.
type groupsOfSet struct{}

func (groupsOfSet) create(ctx context.Context, s *space, n int) error {
	return s.createGroups(ctx, n, s.Sizes.ServingPods)
}

func (s *space) createGroups(ctx context.Context, n, size int) error {
	set := s.setOfGroups(n, size)
	set.Spec.RolloutStrategy.RollingUpdateConfiguration = &leaderworkersetv1.RollingUpdateConfiguration{MaxUnavailable: ptr.To(intstr.FromInt32(updatedAtATime))}
	_, err := s.Cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(s.name).Create(ctx, set, metav1.CreateOptions{})
	return err
}

func (groupsOfSet) update(ctx context.Context, s *space, image string, _ int, _ func(context.Context) error) error {
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image","value":%q}]`, image)
	_, err := s.Cluster.JobSets.LeaderworkersetV1().LeaderWorkerSets(s.name).Patch(ctx, setName, types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

func (groupsOfSet) restart(ctx context.Context, s *space, group int) error {
	return s.deletePod(ctx, fmt.Sprintf("%s-%d-1", setName, group))
}

// deletePod deletes a pod as users do: it is seen to terminate until a kubelet has stopped it. Upstream's controller does not recreate the
// group of a pod that is gone when it looks, as one without a grace period may be.
func (s *space) deletePod(ctx context.Context, name string) error {
	return s.Cluster.Kube.CoreV1().Pods(s.name).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)})
}

// statefulSets are groups each of which is a StatefulSet.
type statefulSets struct{}

func (statefulSets) create(ctx context.Context, s *space, n int) error {
	service := &corev1.Service{
		ObjectMeta: objectMeta(setName, s.name),
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{"app": setName}},
	}
	if _, err := s.Cluster.Kube.CoreV1().Services(s.name).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	return createStatefulSets(ctx, s, 0, n)
}

// createStatefulSets creates the groups from one number to another.
func createStatefulSets(ctx context.Context, s *space, from, to int) error {
	return all(ctx, to-from, parallel, func(i int) error {
		name := groupName(from + i)
		labels := map[string]string{"app": setName, "group": fmt.Sprint(from + i)}
		sts := &appsv1.StatefulSet{
			ObjectMeta: objectMeta(name, s.name),
			Spec: appsv1.StatefulSetSpec{
				Replicas: ptr.To(int32(s.Sizes.ServingPods)), ServiceName: setName, PodManagementPolicy: appsv1.ParallelPodManagement, //nolint:gosec // a small number
				Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: groupTemplate(labels),
				UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
					Type:          appsv1.RollingUpdateStatefulSetStrategyType,
					RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromString("100%"))},
				},
			},
		}
		_, err := s.Cluster.Kube.AppsV1().StatefulSets(s.name).Create(ctx, sts, metav1.CreateOptions{})
		return err
	})
}

func (statefulSets) update(ctx context.Context, s *space, image string, n int, ready func(ctx context.Context) error) error {
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
	for first := 0; first < n; first += updatedAtATime {
		if err := all(ctx, min(updatedAtATime, n-first), parallel, func(i int) error {
			_, err := s.Cluster.Kube.AppsV1().StatefulSets(s.name).Patch(ctx, groupName(first+i), types.JSONPatchType, patch, metav1.PatchOptions{})
			return err
		}); err != nil {
			return err
		}
		if err := ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (statefulSets) restart(ctx context.Context, s *space, group int) error {
	return all(ctx, s.Sizes.ServingPods, parallel, func(i int) error {
		return s.deletePod(ctx, fmt.Sprintf("%s-%d", groupName(group), i))
	})
}

// groupTemplate has as much metadata and as many variables as the webhook and the templates of groups give to their pods.
func groupTemplate(labels map[string]string) corev1.PodTemplateSpec {
	template := servingTemplate(labels)
	maps.Copy(template.Labels, map[string]string{
		"example.com/group-key": "0123456789abcdef0123456789abcdef01234567", "example.com/revision": "0123456789", "example.com/role": "worker",
	})
	template.Annotations = map[string]string{"example.com/leader": groupName(0), "example.com/size": "8"}
	for _, name := range []string{"GROUP_LEADER_ADDRESS", "GROUP_SIZE", "GROUP_INDEX"} {
		template.Spec.Containers[0].Env = append(template.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: "value"})
	}
	return template
}

func groupName(i int) string { return fmt.Sprintf("group-%d", i) }

func servingTemplate(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0), Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		},
	}
}
