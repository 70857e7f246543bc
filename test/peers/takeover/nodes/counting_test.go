// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

const (
	sets, podsOfSet = 10, 2
	// longestGap is how long a container may take from one count to the next. It counts every second. A container that is started
	// again, or whose pod is replaced, shows in its restarts or in the UID of the pod, however fast that was.
	longestGap = 5 * time.Second
	// watched is for how long a controller runs that has sets of the other one.
	watched = 20 * time.Second

	volume, file = "counts", "seconds"
)

// TestContainersCountOn moves sets over and back, whose containers count seconds all the time. The migrations run in Jobs.
func TestContainersCountOn(t *testing.T) {
	c := begin(t)
	time.Sleep(5 * time.Second)
	c.check(t, "before the move")
	if err := cluster.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := upstream.Stop(); err != nil {
		t.Fatal(err)
	}
	moveInCluster(t, "to-server", "13 of 13: ")
	c.check(t, "after the move")

	controller := cluster.StartController(t)
	c.reconciled(t)
	time.Sleep(watched)
	c.check(t, "under our controller")

	if err := controller.Terminate(); err != nil {
		t.Fatal(err)
	}
	moveInCluster(t, "to-crd", "17 of 17: ")
	c.check(t, "after the way back")

	if err := upstream.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.reconciled(t)
	time.Sleep(watched)
	c.check(t, "under upstream's controller")
	c.countsOn(t, time.Now())
	c.check(t, "in the end")
}

// moveInCluster moves the sets by a Job, whose log the command must show. Nothing may be left of its permissions.
func moveInCluster(t *testing.T, direction, lastStep string) {
	t.Helper()
	out := cluster.Migrate(t, direction, "--in-cluster", "--image="+localcluster.PluginImage)
	for _, want := range []string{"Created Job jobset-system/jobset-apiserver-migration ", "Log of pod jobset-apiserver-migration-", lastStep, " has succeeded\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the command does not say %q", want)
		}
	}
	_, err := cluster.Kube.RbacV1().ClusterRoleBindings().Get(t.Context(), "jobset-apiserver-migration", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the permissions of the Job are still there: %v", err)
	}
}

// counting are sets whose containers count.
type counting struct {
	namespace string
	// pods are all pods when they had begun to count, by name.
	pods map[string]corev1.Pod
}

// begin creates the sets, and waits until all of their containers count.
func begin(t *testing.T) *counting {
	t.Helper()
	namespace, err := cluster.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "counting-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{namespace: namespace.Name}
	for i := range sets {
		set := newSet(fmt.Sprint("set-", i), c.namespace)
		framework.Eventually(t, "the set is created", func(ctx context.Context) error { // as soon as the webhooks answer
			_, err := cluster.JobSets.JobsetV1alpha2().JobSets(c.namespace).Create(ctx, set.DeepCopy(), metav1.CreateOptions{})
			return err
		})
	}
	framework.Eventually(t, "all containers count", func(ctx context.Context) (err error) {
		if c.pods, err = c.list(ctx); err != nil {
			return err
		}
		if len(c.pods) != sets*podsOfSet {
			return fmt.Errorf("%d pods exist", len(c.pods))
		}
		return c.every(func(times []time.Time) error {
			if len(times) == 0 {
				return errors.New("it has not begun")
			}
			return nil
		})
	})
	return c
}

// newSet returns a set whose containers write the time into a file every second.
func newSet(name, namespace string) *jobsetv1alpha2.JobSet {
	set := builders.JobSet(name, builders.WithJobs("workers", 1, podsOfSet))
	set.Namespace = namespace
	pod := &set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	pod.Containers = []corev1.Container{{
		Name: "main", Image: localcluster.ProgramImage, Args: []string{"count", "/counts/" + file},
		VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: "/counts"}},
	}}
	pod.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return set
}

func (c *counting) list(ctx context.Context) (map[string]corev1.Pod, error) {
	list, err := cluster.Kube.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods, nil
}

// counts returns when the container of a pod has counted. Nodes have the file system of this machine: the volume is a directory, whose
// name has the UID of the pod in it.
func counts(pod corev1.Pod) ([]time.Time, error) {
	content, err := os.ReadFile(filepath.Join(cluster.Dir, pod.Spec.NodeName, "kubelet", "pods", string(pod.UID), "volumes", "kubernetes.io~empty-dir", volume, file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var times []time.Time
	for line := range strings.Lines(string(content)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		seconds, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		if err != nil {
			return nil, err
		}
		times = append(times, time.UnixMilli(int64(seconds*1000)))
	}
	return times, nil
}

// every looks at the counts of all containers.
func (c *counting) every(look func([]time.Time) error) error {
	var errs []error
	for name, pod := range c.pods {
		times, err := counts(pod)
		if err == nil {
			err = look(times)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// check fails the test if a pod is gone, new or another one, if a container was started again, or if one has not counted for
// too long, until now.
func (c *counting) check(t *testing.T, when string) {
	t.Helper()
	pods, err := c.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range pods {
		if was, known := c.pods[name]; !known || pod.UID != was.UID || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("%s: the pod %s is %s, with the UID %q in place of %q, deleted at %v", when, name, pod.Status.Phase, pod.UID, was.UID, pod.DeletionTimestamp)
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.RestartCount != 0 {
				t.Errorf("%s: the container of %s was started again %d times", when, name, status.RestartCount)
			}
		}
	}
	for name := range c.pods {
		if _, exists := pods[name]; !exists {
			t.Errorf("%s: the pod %s is gone", when, name)
		}
	}
	c.gaps(t, when)
}

// gaps fails the test if a container has not counted for too long, and logs the longest time in which one has not.
func (c *counting) gaps(t *testing.T, when string) {
	t.Helper()
	var longest, counted time.Duration
	var at time.Time // of the longest
	total := 0
	err := c.every(func(times []time.Time) error {
		if len(times) == 0 {
			return errors.New("its counts are gone")
		}
		total += len(times)
		now := time.Now()
		counted = max(counted, now.Sub(times[0]))
		for i := range times {
			next := now
			if i+1 < len(times) {
				next = times[i+1]
			}
			gap := next.Sub(times[i])
			if gap > longest {
				longest, at = gap, times[i]
			}
			if gap > longestGap {
				return fmt.Errorf("it did not count for %s after %s", gap, times[i].UTC().Format(time.TimeOnly))
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", when, err)
	}
	t.Logf("%s %s: %d containers have counted %d times in %s; the longest gap is %s, after %s",
		time.Now().UTC().Format(time.TimeOnly), when, len(c.pods), total, counted.Round(time.Second), longest, at.UTC().Format(time.TimeOnly))
}

// reconciled takes away what the status of each set says about its Jobs, and waits until the controller that runs has written it again.
func (c *counting) reconciled(t *testing.T) {
	t.Helper()
	client := cluster.JobSets.JobsetV1alpha2().JobSets(c.namespace)
	for i := range sets {
		name := fmt.Sprint("set-", i)
		framework.Eventually(t, "the status is emptied", func(ctx context.Context) error {
			_, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"replicatedJobsStatus":null}}`), metav1.PatchOptions{}, "status")
			return err
		})
		framework.Eventually(t, "the status is written", func(ctx context.Context) error {
			set, err := client.Get(ctx, name, metav1.GetOptions{})
			if err == nil && (len(set.Status.ReplicatedJobsStatus) != 1 || set.Status.ReplicatedJobsStatus[0].Ready != 1) {
				err = fmt.Errorf("it is %+v", set.Status.ReplicatedJobsStatus)
			}
			return err
		})
	}
}

// countsOn waits until all containers have counted after this time.
func (c *counting) countsOn(t *testing.T, since time.Time) {
	t.Helper()
	framework.Eventually(t, "all containers have counted again", func(context.Context) error {
		return c.every(func(times []time.Time) error {
			if len(times) == 0 || !times[len(times)-1].After(since) {
				return errors.New("it has not")
			}
			return nil
		})
	})
}
