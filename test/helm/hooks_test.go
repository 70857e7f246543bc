// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// Charts of users have a set with the name of the release, and a hook of artifacts/gitops.
const (
	chartOfUser = "apiVersion: v2\nname: user\nversion: 0.1.0\n"
	jobSet      = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: %s
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: ` + localcluster.ProgramImage + `
              args: %s
`
	sequentialJob = `apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata:
  name: %s
spec:
  steps:
  - name: one
    job:
      spec:
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: ` + localcluster.ProgramImage + `
              args: %s
`
	leaderWorkerSet = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: %s
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        nodeSelector: %s
        terminationGracePeriodSeconds: 0
        containers:
        - name: main
          image: ` + localcluster.ProgramImage + `
`
)

// replacements are what the page says to replace in the hooks, and the name of the set.
func replacements(release string) *strings.Replacer {
	switch release {
	case "steps", "broken":
		return strings.NewReplacer("jobset.x-k8s.io", "batch.jobset-apiserver.io", "[jobsets]", "[sequentialjobs]",
			"jobset/train", "sequentialjob/"+release,
			"{.status.terminalState}", "{.status.completionTime}", "condition=Completed", "condition=Complete")
	case "pending": // A set that is never available is not waited for longer than it must.
		return strings.NewReplacer("leaderworkerset/serve", "leaderworkerset/"+release, "--timeout=4m", "--timeout=10s")
	default:
		return strings.NewReplacer("jobset/train", "jobset/"+release, "leaderworkerset/serve", "leaderworkerset/"+release)
	}
}

// TestHooksWaitForSets installs charts with the hooks of docs/operations/gitops.md, beside each other in one namespace.
func TestHooksWaitForSets(t *testing.T) {
	removeEverything(t)
	own := filepath.Join(shared.Root, "charts", "jobset-apiserver")
	mustHelm(t, "install", "jobset", own, "--set", "image.local=true,image.tag=v0.0.0-local")
	available(t)
	kubectlImage(t)
	t.Cleanup(deleteHooks)

	good := chart(t, "good", "helm-wait-finished.yaml", fmt.Sprintf(jobSet, "good", `[exit, "0"]`))
	bad := chart(t, "bad", "helm-wait-finished.yaml", fmt.Sprintf(jobSet, "bad", `[exit, "3"]`))
	slow := chart(t, "slow", "helm-wait-finished.yaml", fmt.Sprintf(jobSet, "slow", "[]"))
	steps := chart(t, "steps", "helm-wait-finished.yaml", fmt.Sprintf(sequentialJob, "steps", `[exit, "0"]`))
	broken := chart(t, "broken", "helm-wait-finished.yaml", fmt.Sprintf(sequentialJob, "broken", `[exit, "3"]`))
	serve := chart(t, "serve", "helm-wait.yaml", fmt.Sprintf(leaderWorkerSet, "serve", "{}"))
	pending := chart(t, "pending", "helm-wait.yaml", fmt.Sprintf(leaderWorkerSet, "pending", "{jobset-tests/none: none}"))

	mustHelm(t, "install", "good", good, "--wait")
	set, err := jobsets.JobsetV1alpha2().JobSets("default").Get(t.Context(), "good", metav1.GetOptions{})
	if err != nil || set.Status.TerminalState != "Completed" {
		t.Errorf("helm install must wait until the set has completed: %v, %+v", err, set.Status)
	}
	mustHelm(t, "install", "serve", serve, "--wait")
	group, err := jobsets.LeaderworkersetV1().LeaderWorkerSets("default").Get(t.Context(), "serve", metav1.GetOptions{})
	if err != nil || group.Status.ReadyReplicas != 1 {
		t.Errorf("helm install must wait until the set is available: %v, %+v", err, group.Status)
	}
	mustHelm(t, "install", "steps", steps, "--wait")
	refused(t, []string{"install", "broken", broken, "--wait"}, "sequentialjob/broken:", "Failed: Job 0 failed: BackoffLimitExceeded")
	refused(t, []string{"install", "bad", bad, "--wait"},
		"jobset/bad: Failed: jobset failed due to one or more job failures",
		"first failure: pod bad-workers-0-0-", "container main, exit code 3", "Job/default/bad-finished not ready. status: Failed")
	refused(t, []string{"install", "slow", slow, "--timeout", "10s"},
		"Job/default/slow-finished not ready. status: InProgress", "deadline exceeded")
	refused(t, []string{"install", "pending", pending}, "timed out waiting for the condition on leaderworkersets/pending")
	mustHelm(t, "upgrade", "good", good)
	mustHelm(t, "upgrade", "serve", serve)

	for _, release := range []string{"good", "serve", "steps", "broken", "bad", "slow", "pending"} {
		mustHelm(t, "uninstall", release, "--wait")
	}
	// kubectl wait does not end when the object that it waits for is deleted.
	kubectl(t, "delete", "job", "slow-finished")
	nothingIsLeft(t)
}

// chart writes a chart with a set and one of our hooks.
func chart(t *testing.T, name, hook, set string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(shared.Root, "artifacts", "gitops", hook))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{"Chart.yaml": chartOfUser, "templates/set.yaml": set, "templates/wait.yaml": replacements(name).Replace(string(content))}
	for file, content := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// kubectlImage makes the image of the hooks known to the nodes, which cannot pull it here. It has kubectl at the same path, and no shell.
func kubectlImage(t *testing.T) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "kubectl.tar")
	program := filepath.Join(os.Getenv("JOBSET_BINARIES"), "kubectl")
	if err := localcluster.WriteImage(archive, program, "bin/kubectl", "registry.k8s.io/kubectl:v1.36.3"); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if err := shared.ImportImage(node, archive); err != nil {
			t.Fatal(err)
		}
	}
}

// deleteHooks deletes what is left of the hooks, because the next test expects no Jobs.
func deleteHooks() {
	background := metav1.DeletePropagationBackground
	_ = core.BatchV1().Jobs("default").DeleteCollection(context.Background(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
}

// refused runs Helm, which must fail and print all messages.
func refused(t *testing.T, args []string, messages ...string) {
	t.Helper()
	out, err := helm(t, args...)
	if err == nil {
		t.Errorf("helm %s must fail, printed\n%s", strings.Join(args, " "), out)
	}
	for _, message := range messages {
		if !strings.Contains(out, message) {
			t.Errorf("helm %s must print %q, printed\n%s", strings.Join(args, " "), message, out)
		}
	}
}

// nothingIsLeft checks that Helm has deleted what the releases had. Only the Jobs of hooks that failed are kept, for a day.
func nothingIsLeft(t *testing.T) {
	t.Helper()
	for _, hook := range []string{"good-finished", "steps-finished", "serve-wait"} {
		if _, err := core.BatchV1().Jobs("default").Get(t.Context(), hook, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the Job of a hook that succeeded must be deleted: %v", err)
		}
	}
	for _, hook := range []string{"bad-finished", "broken-finished", "pending-wait"} {
		framework.Eventually(t, "the hook "+hook+" has ended", func(ctx context.Context) error {
			job, err := core.BatchV1().Jobs("default").Get(ctx, hook, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, condition := range job.Status.Conditions {
				if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("status is %+v", job.Status)
		})
	}
	roles, err := core.RbacV1().Roles("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=Helm"})
	if err != nil || len(roles.Items) > 0 {
		t.Errorf("roles of the hooks are left: %v, %v", err, roles.Items)
	}
}
