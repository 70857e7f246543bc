// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	typedv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

type (
	jobSet        = jobsetv1alpha2.JobSet
	replicatedJob = jobsetv1alpha2.ReplicatedJob
)

// changeTimeout bounds a call of kubectl.
var changeTimeout = framework.StepTimeout()

// env is what one test works with: a namespace of its own.
type env struct {
	framework.Test
	namespace string
	sets      typedv1alpha2.JobSetInterface
}

// newEnv lets the test run beside others.
func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	namespace, err := shared.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "row-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{Test: framework.Test{T: t}, namespace: namespace.Name, sets: shared.JobSets.JobsetV1alpha2().JobSets(namespace.Name)}
	t.Cleanup(func() {
		if t.Failed() {
			e.Log(e.run("", "get", "jobsets,jobs,pods,pvc,services", "-o", "wide"), e.run("", "get", "jobsets", "-o", "yaml"),
				e.run("", "events"))
		}
		// What runs on would take the machine from the rows that follow.
		e.run("", "delete", "jobsets", "--all", "--wait=false")
	})
	return e
}

// example applies a manifest of testdata/examples.
func (e *env) example(name string, changes ...string) {
	e.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "examples", name+".yaml"))
	if err != nil {
		e.Fatal(err)
	}
	e.apply(strings.NewReplacer(changes...).Replace(string(content)))
}

func (e *env) apply(manifest string) {
	e.Helper()
	if r := e.run(manifest, "apply", "--server-side", "-f", "-"); r.err != nil {
		e.Fatal(r)
	}
}

// answer is what kubectl printed.
type answer struct {
	args, stdout, stderr string
	err                  error
}

func (a answer) String() string {
	return fmt.Sprintf("kubectl %s: %v\n%s%s", a.args, a.err, a.stdout, a.stderr)
}

// run calls kubectl in the namespace.
func (e *env) run(stdin string, args ...string) answer {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), changeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, shared.kubectl, append([]string{"--kubeconfig", shared.Kubeconfig(), "--namespace", e.namespace}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	return answer{strings.Join(args, " "), stdout.String(), stderr.String(), err}
}

// eventually polls until the check finds no problem.
func (e *env) eventually(check func() (problem string)) {
	e.Helper()
	framework.EventuallyNoProblem(e, check)
}

func (e *env) get(name string) *jobSet {
	e.Helper()
	js, err := e.sets.Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return js
}

// awaitCondition waits until a condition is as in "True AllJobsCompleted" and returns the set.
func (e *env) awaitCondition(name, kind, want string) *jobSet {
	e.Helper()
	var js *jobSet
	e.eventually(func() string {
		js = e.get(name)
		got := ""
		if c := meta.FindStatusCondition(js.Status.Conditions, kind); c != nil {
			got = string(c.Status) + " " + c.Reason
		}
		if got != want {
			return fmt.Sprintf("condition %s of %s: got %q, want %q", kind, name, got, want)
		}
		return ""
	})
	return js
}

func (e *env) awaitCompleted(name string) *jobSet {
	e.Helper()
	return e.awaitCondition(name, jobsetv1alpha2.JobSetCompleted, "True AllJobsCompleted")
}

func (e *env) awaitFailed(name, reason string) *jobSet {
	e.Helper()
	return e.awaitCondition(name, jobsetv1alpha2.JobSetFailed, "True "+reason)
}

// jobs returns the Jobs by name.
func (e *env) jobs() map[string]*batchv1.Job {
	e.Helper()
	list, err := shared.Kube.BatchV1().Jobs(e.namespace).List(e.Context(), metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}
	jobs := map[string]*batchv1.Job{}
	for i := range list.Items {
		jobs[list.Items[i].Name] = &list.Items[i]
	}
	return jobs
}

// awaitJobs waits until exactly these Jobs are there and returns them.
func (e *env) awaitJobs(want ...string) map[string]*batchv1.Job {
	e.Helper()
	slices.Sort(want)
	var jobs map[string]*batchv1.Job
	e.eventually(func() string {
		jobs = e.jobs()
		got := sortedKeys(jobs)
		if !slices.Equal(got, want) {
			return fmt.Sprintf("Jobs: got %v, want %v", got, want)
		}
		return ""
	})
	return jobs
}

// pods returns the pods of a Job that are not being deleted; of all Jobs without a name.
func (e *env) pods(job string) []corev1.Pod {
	e.Helper()
	options := metav1.ListOptions{LabelSelector: batchv1.JobNameLabel}
	if job != "" {
		options.LabelSelector += "=" + job
	}
	list, err := shared.Kube.CoreV1().Pods(e.namespace).List(e.Context(), options)
	if err != nil {
		e.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// awaitRunning waits until so many pods of a Job run and returns them.
func (e *env) awaitRunning(job string, count int) []corev1.Pod {
	e.Helper()
	var pods []corev1.Pod
	e.eventually(func() string {
		pods = slices.DeleteFunc(e.pods(job), func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
		if len(pods) != count {
			return fmt.Sprintf("pods of %q that run: got %d, want %d", job, len(pods), count)
		}
		return ""
	})
	return pods
}

// end makes pods that run end at once with an outcome.
func (e *env) end(outcome string, pods []corev1.Pod) {
	e.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"jobset-apiserver.io/kwok-outcome":%q,"jobset-apiserver.io/kwok-run-seconds":"0"}}}`, outcome)
	for _, p := range pods {
		if _, err := shared.Kube.CoreV1().Pods(e.namespace).Patch(e.Context(), p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			e.Fatal(err)
		}
	}
}

// failJob lets one pod of a Job fail, once so many run.
func (e *env) failJob(job string, count int) {
	e.Helper()
	e.end("failed", e.awaitRunning(job, count)[:1])
}

// succeed lets all pods of a Job succeed, once so many run.
func (e *env) succeed(job string, count int) {
	e.Helper()
	e.end("succeeded", e.awaitRunning(job, count))
}
