// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm installs, upgrades and uninstalls the chart on three real nodes, as a user does, and charts of users. It needs root. With
// JOBSET_HELM_CLUSTER_DIR, nodes that run already without our programs (CLUSTER_COMPONENTS=images) are used.
package helm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/suite"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

var (
	shared  *localcluster.Cluster
	core    kubernetes.Interface
	jobsets versioned.Interface
	program string
)

func TestMain(m *testing.M) {
	suite.Main("helm", func() (int, error) {
		var err error
		shared, err = localcluster.New(".cluster-helm", "JOBSET_HELM_CLUSTER_DIR", "CLUSTER_REAL_NODES=3", "CLUSTER_NODES=0", "CLUSTER_COMPONENTS=images")
		if err != nil {
			return 0, err
		}
		return shared.Run(m, func() error {
			if err := connect(); err != nil {
				return err
			}
			return provisionClaims(context.Background())
		})
	})
}

// nodes are the real nodes of the cluster.
var nodes = []string{"real-1", "real-2", "real-3"}

func connect() error {
	config, err := shared.Config()
	if err != nil {
		return err
	}
	if core, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if jobsets, err = versioned.NewForConfig(config); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(shared.Root, "hack", "ensure-helm.sh"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	program = filepath.Join(strings.TrimSpace(string(out)), "helm")
	return err
}

// helm runs Helm and returns what it printed.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	start := time.Now()
	cmd := exec.CommandContext(t.Context(), program, args...)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("helm %s took %s", args[0], time.Since(start).Round(time.Millisecond))
	return string(out), err
}

func mustHelm(t *testing.T, args ...string) {
	t.Helper()
	if out, err := helm(t, args...); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// available waits until all our APIs answer.
func available(t *testing.T) {
	t.Helper()
	start := time.Now()
	for _, group := range apiservice.Groups {
		framework.Eventually(t, apiservice.Name(group)+" answers", func(ctx context.Context) error {
			return core.CoreV1().RESTClient().Get().AbsPath("/apis", group.Group, group.Version).Do(ctx).Error()
		})
	}
	framework.Eventually(t, "sets are listed", func(ctx context.Context) error {
		_, err := jobsets.JobsetV1alpha2().JobSets("default").List(ctx, metav1.ListOptions{})
		return err
	})
	t.Logf("available after %s", time.Since(start).Round(100*time.Millisecond))
}

// rolledOut waits until all pods are ready, and have the revision of the last upgrade.
func rolledOut(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the pods are replaced", func(ctx context.Context) error {
		server, err := core.AppsV1().StatefulSets(apiservice.Namespace).Get(ctx, "jobset-apiserver", metav1.GetOptions{})
		if err != nil {
			return err
		}
		controller, err := core.AppsV1().Deployments(apiservice.Namespace).Get(ctx, "jobset-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		want := ptr.Deref(server.Spec.Replicas, 1)
		if s := server.Status; s.ObservedGeneration < server.Generation || s.UpdatedReplicas < want || s.ReadyReplicas < want || s.CurrentRevision != s.UpdateRevision {
			return fmt.Errorf("status of the server: %+v", s)
		}
		want = ptr.Deref(controller.Spec.Replicas, 1)
		if s := controller.Status; s.ObservedGeneration < controller.Generation || s.UpdatedReplicas < want || s.ReadyReplicas < want || s.Replicas > want {
			return fmt.Errorf("status of the controller: %+v", s)
		}
		return nil
	})
}

// TestRelease goes through the life of a release with a running set.
func TestRelease(t *testing.T) {
	chart := filepath.Join(shared.Root, "charts", "jobset-apiserver")
	mustHelm(t, "install", "jobset", chart, "--set", "image.local=true,image.tag=v0.0.0-local")
	available(t)
	collectorWatches(t)
	before := runSet(t)

	upgrade := []string{"upgrade", "jobset", chart, "--reset-then-reuse-values"}
	mustHelm(t, append(upgrade, "--set", "apiserver.verbosity=1,controller.verbosity=1,controller.podAnnotations.note=x,apiserver.resources.limits.memory=1Gi")...)
	rolledOut(t)
	available(t)
	if after := state(t); after != before {
		t.Errorf("the upgrade must not change the set and its Job: before %+v, after %+v", before, after)
	}
	for value, message := range map[string]string{
		"store.type=external":      "but this cluster's installation stores in embedded",
		"store.embedded.size=20Gi": "but the StatefulSet has 10Gi",
	} {
		if out, err := helm(t, append(upgrade, "--set", value)...); err == nil || !strings.Contains(out, message) {
			t.Errorf("%s: the message must contain %q, is %s", value, message, out)
		}
	}

	mustHelm(t, "uninstall", "jobset")
	namespaceIsDeleted(t)
	framework.Eventually(t, "the server has ended", func(ctx context.Context) error {
		_, err := core.CoreV1().Pods(apiservice.Namespace).Get(ctx, "jobset-apiserver-0", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the pod is there: %v", err)
	})
	if _, err := core.CoreV1().PersistentVolumeClaims(apiservice.Namespace).Get(t.Context(), "data-jobset-apiserver-0", metav1.GetOptions{}); err != nil {
		t.Errorf("the claim must outlive the release: %v", err)
	}

	mustHelm(t, "install", "jobset", chart, "--set", "image.local=true,image.tag=v0.0.0-local")
	available(t)
	if after := state(t); after.set != before.set || after.job != before.job || after.jobVersion != before.jobVersion {
		t.Errorf("a second installation must find the set and its Job: before %+v, after %+v", before, after)
	}
}

// collectorWatches waits until the garbage collector watches JobSets, because no other program ends a deletion in the foreground. Until then, it looks up
// the owner of each new Job, and after an error again later. If it does so right after helm uninstall, it gets 404, and deletes the Job (docs/helm.md).
func collectorWatches(t *testing.T) {
	t.Helper()
	start := time.Now()
	createSet(t, "watched")
	framework.Eventually(t, "the garbage collector deletes a set in the foreground", func(ctx context.Context) error {
		foreground := metav1.DeletePropagationForeground
		err := jobsets.JobsetV1alpha2().JobSets("default").Delete(ctx, "watched", metav1.DeleteOptions{PropagationPolicy: &foreground})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%v)", err)
	})
	t.Logf("the garbage collector watches sets after %s", time.Since(start).Round(100*time.Millisecond))
}

// versions identify a set, its Job, and what both were at a moment.
type versions struct{ set, setVersion, job, jobVersion string }

// runSet starts a set and returns its versions once it is stable.
func runSet(t *testing.T) versions {
	t.Helper()
	createSet(t, "running")
	framework.Eventually(t, "the set runs", func(ctx context.Context) error {
		set, err := jobsets.JobsetV1alpha2().JobSets("default").Get(ctx, "running", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if statuses := set.Status.ReplicatedJobsStatus; len(statuses) != 1 || statuses[0].Ready != 1 {
			return fmt.Errorf("status is %+v", set.Status)
		}
		return nil
	})
	return state(t)
}

// createSet creates a set with one pod, whose program has the arguments.
func createSet(t *testing.T, name string, args ...string) {
	t.Helper()
	js := &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: jobsetv1alpha2.JobSetSpec{ReplicatedJobs: []jobsetv1alpha2.ReplicatedJob{{
			Name: "w", Replicas: ptr.To[int32](1),
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: localcluster.ProgramImage, Args: args}},
			}}}},
		}}},
	}
	framework.Eventually(t, "the set is created", func(ctx context.Context) error {
		_, err := jobsets.JobsetV1alpha2().JobSets("default").Create(ctx, js, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // An attempt was accepted whose answer was lost.
			return nil
		}
		return err
	})
}

func state(t *testing.T) versions {
	t.Helper()
	set, err := jobsets.JobsetV1alpha2().JobSets("default").Get(t.Context(), "running", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := core.BatchV1().Jobs("default").Get(t.Context(), "running-w-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return versions{string(set.UID), set.ResourceVersion, string(job.UID), job.ResourceVersion}
}

// namespaceIsDeleted checks that a namespace with objects can be deleted although our server has just gone.
func namespaceIsDeleted(t *testing.T) {
	t.Helper()
	namespace, err := core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "helm-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}}
	if _, err := core.CoreV1().ConfigMaps(namespace.Name).Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := core.CoreV1().Namespaces().Delete(t.Context(), namespace.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the namespace is deleted", func(ctx context.Context) error {
		switch n, err := core.CoreV1().Namespaces().Get(ctx, namespace.Name, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return fmt.Errorf("conditions are %+v", n.Status.Conditions)
		}
	})
	t.Logf("the namespace was deleted in %s", time.Since(start).Round(100*time.Millisecond))
}
