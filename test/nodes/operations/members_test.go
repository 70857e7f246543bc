// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/members"
)

const (
	// manySets is the number of sets that run, on simulated nodes, while the store grows.
	manySets = 200
	// simulated keeps the pods of the installation from simulated nodes.
	simulated = "simulated"
)

// TestEmbeddedStoreGrows installs one server with its embedded store, lets sets run, and gets three servers as docs/installation.md
// describes it. Then it restarts them, loses a volume, and deletes a namespace while one server is away. The sets and their children stay.
func TestEmbeddedStoreGrows(t *testing.T) {
	useCluster(t, ".cluster-nodes-members", []string{"CLUSTER_REAL_NODES=3", "CLUSTER_NODES=4", "CLUSTER_COMPONENTS=images"})
	must(t, "taint", "nodes", "--selector=type=kwok", simulated+"=true:NoSchedule")
	installEmbedded(t)
	many := newMany(t)
	for n := range 2 {
		if err := volume(t.Context(), claimOf(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	observe(t, "growth from one member to three", false, func(s *steps) {
		if err := apply(s.Context(), []string{"overlays/embedded-ha"}); err != nil {
			s.Fatal(err)
		}
		s.reached("the manifests are applied")
		must(t, "--namespace="+namespace, "delete", "pod", "jobset-apiserver-0")
		s.reached("the first pod is deleted")
		s.installationReady()
		s.threeMembers()
	})
	many.same(t)
	// Commands about the store work in any pod.
	if backup := must(t, "--namespace="+namespace, "exec", "jobset-apiserver-1", "--", "jobset-apiserver", "store", "backup", "-", "--data-dir=/var/lib/jobset-apiserver/data"); backup == "" {
		t.Error("the backup is empty")
	}
	// The second restart begins when the pods have just become ready.
	for range 2 {
		observe(t, "rolling restart of three servers with members", true, func(s *steps) {
			ends := s.fewest(map[string]string{"servers": serverPods})
			s.restart("statefulset/jobset-apiserver", serverPods)
			if fewest := ends()["servers"]; fewest < 2 {
				s.Errorf("%d of 3 servers were ready, must be at least 2", fewest)
			}
		})
	}
	observe(t, "loss of a volume", false, func(s *steps) {
		s.loseVolume(1)
		s.installationReady()
		s.threeMembers()
	})
	observe(t, "deletion of a namespace while a server is away", false, func(s *steps) {
		must(t, "cordon", "--selector=type!=kwok")
		must(t, "--namespace="+namespace, "delete", "pod", "jobset-apiserver-2")
		s.reached("a server is away")
		s.deleteNamespace()
		must(t, "uncordon", "--selector=type!=kwok")
		s.installationReady()
	})
	many.same(t)
}

func claimOf(ordinal int) string { return fmt.Sprintf("data-jobset-apiserver-%d", ordinal) }

// threeMembers waits until the store has three members with a vote.
func (s *steps) threeMembers() {
	s.Helper()
	members.AwaitThree(s, kubectl)
	s.reached("the store has three members")
}

// loseVolume gives a server an empty volume, as docs/installation.md describes it.
func (s *steps) loseVolume(ordinal int) {
	s.Helper()
	claim, pod := claimOf(ordinal), fmt.Sprintf("jobset-apiserver-%d", ordinal)
	must(s.T, "--namespace="+namespace, "delete", "persistentvolumeclaim", claim, "--wait=false")
	must(s.T, "delete", "persistentvolume", claim, "--wait=false")
	must(s.T, "--namespace="+namespace, "delete", "pod", pod)
	s.reached(pod + " and its claim are deleted")
	framework.Eventually(s, "the volume is gone", func(ctx context.Context) error {
		if _, err := core.CoreV1().PersistentVolumes().Get(ctx, claim, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	if err := errors.Join(emptyVolume(claim), volume(s.Context(), claim)); err != nil {
		s.Fatal(err)
	}
	s.reached("there is an empty volume for the claim")
}

// deleteNamespace creates a namespace with a set, and deletes it.
func (s *steps) deleteNamespace() {
	s.Helper()
	created, err := core.CoreV1().Namespaces().Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "deleted-"}}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	framework.Eventually(s, "a set is created", func(ctx context.Context) error {
		_, err := jobsets.JobsetV1alpha2().JobSets(created.Name).Create(ctx, oneOfMany("set"), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	must(s.T, "delete", "namespace", created.Name, "--timeout=5m")
	s.reached("the namespace is deleted")
}

// many are sets that run, with the UIDs of all objects.
type many struct {
	namespace string
	uids      map[string]types.UID
}

func oneOfMany(name string) *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: jobsetv1alpha2.JobSetSpec{
		ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{Name: "w", Replicas: ptr.To[int32](1), Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"jobset-apiserver.io/kwok-outcome": "running"}}, Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"type": "kwok"},
				Tolerations: []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists}},
				Containers:  []corev1.Container{{Name: "main", Image: "main"}},
			}},
		}}}},
	}}
}

// newMany creates the sets, and waits until their pods run.
func newMany(t *testing.T) *many {
	t.Helper()
	created, err := core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "many-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := &many{namespace: created.Name}
	for n := range manySets {
		if _, err := jobsets.JobsetV1alpha2().JobSets(m.namespace).Create(t.Context(), oneOfMany(fmt.Sprintf("set-%d", n)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	framework.Eventually(t, "all pods run", func(ctx context.Context) error {
		pods, err := core.CoreV1().Pods(m.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		running := 0
		for i := range pods.Items {
			if podReady(&pods.Items[i]) {
				running++
			}
		}
		if running != manySets {
			return fmt.Errorf("%d of %d do", running, manySets)
		}
		return nil
	})
	m.uids = m.objects(t)
	return m
}

// objects returns the UIDs of the sets, their Jobs and pods.
func (m *many) objects(t *testing.T) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	sets, err := jobsets.JobsetV1alpha2().JobSets(m.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		uids["jobset "+sets.Items[i].Name] = sets.Items[i].UID
	}
	jobs, err := core.BatchV1().Jobs(m.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs.Items {
		uids["job "+jobs.Items[i].Name] = jobs.Items[i].UID
	}
	pods, err := core.CoreV1().Pods(m.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		uids["pod "+pods.Items[i].Name] = pods.Items[i].UID
	}
	return uids
}

// same checks that all objects are still there, and no others.
func (m *many) same(t *testing.T) {
	t.Helper()
	now := m.objects(t)
	var changed []string
	for name, uid := range m.uids {
		if now[name] != uid {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	if len(changed) > 0 || len(now) != len(m.uids) || len(now) != 3*manySets {
		t.Errorf("%d objects, %d before, must be %d; changed or gone: %s", len(now), len(m.uids), 3*manySets, strings.Join(changed, ", "))
	}
	t.Logf("%d sets with their Jobs and pods are the same %s after the first was created", manySets, time.Now().Format(time.TimeOnly))
}
