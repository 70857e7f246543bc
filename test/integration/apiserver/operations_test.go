// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/runbook"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// operator does what the pages of docs/operations say, with their commands.
type operator struct {
	*env
	witness, backup, upgrade *runbook.Page
	kubeconfig               string
}

// late is how many sets are newer than the backup: more than are tolerated.
const late = 12

// TestOperations runs each command of docs/operations in a story: a backup, a loss, a restore, an acceptance.
func TestOperations(t *testing.T) {
	tier.OnRequest(t, "follows the page about operations")
	const pages = "../../../docs/operations/"
	kubeconfig, err := plane.Kubeconfig("operator", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{
		witness: runbook.Open(t, pages+"witness.md"), backup: runbook.Open(t, pages+"backup.md"), upgrade: runbook.Open(t, pages+"upgrade.md"), kubeconfig: kubeconfig,
	}
	newInstallation(t)
	dir, restored, file := framework.ShortDir(t), filepath.Join(framework.ShortDir(t), "data"), filepath.Join(t.TempDir(), "backup.db")
	server := plane.StartServer(t, withWitness(framework.Embedded(dir)...)...)
	o.env = newEnv(t, server, server.Config(t))
	kept := o.create(t, jobSet("kept"))
	o.createJob(t, kept)
	o.run(t, 0, o.backup.Command(t, "jobset-apiserver store backup FILE --data-dir", "FILE", file, "DIRECTORY", dir))
	if out := o.run(t, 0, o.backup.Command(t, "jobset-apiserver store verify", "FILE", file)); !strings.Contains(out, "jobsets.jobset.x-k8s.io") {
		t.Errorf("verify: %s", out)
	}
	for i := range late {
		o.createJob(t, o.create(t, jobSet(fmt.Sprintf("late-%d", i))))
	}
	server.Stop(t)
	o.run(t, 0, o.backup.Command(t, "jobset-apiserver store restore", "FILE", file, "DIRECTORY", restored))

	server = launchRefused(t, framework.Embedded(restored)...)
	refusal := awaitRefusal(t, witness.ReasonRolledBack)
	if refusal.JobsAtStake != late {
		t.Errorf("refusal %+v", refusal)
	}
	if out := o.run(t, 2, o.witness.Command(t, "jobset-apiserver store status")); !strings.Contains(out, refusal.NewUUID) {
		t.Errorf("status: %s", out)
	}
	o.run(t, 0, o.witness.Command(t, "kubectl -n kube-system get configmap"))
	o.run(t, 0, append(o.witness.Command(t, "jobset-apiserver store release-orphans"), "--dry-run=client"))
	accept := o.witness.Command(t, "jobset-apiserver store accept --uuid", "UUID", refusal.NewUUID, "REVISION", fmt.Sprint(refusal.Revision))
	if out := o.run(t, 1, accept); !strings.Contains(out, "--abandon-jobs") {
		t.Errorf("accept: %s", out)
	}
	if out := o.run(t, 0, o.witness.Command(t, "jobset-apiserver store release-orphans")); !strings.Contains(out, "late-3") || strings.Contains(out, "kept") {
		t.Errorf("release-orphans: %s", out)
	}
	framework.Eventually(t, "nothing is at stake any more", func(context.Context) error {
		if loss := record(t).Refusal.JobsAtStake; loss != 0 {
			return fmt.Errorf("%d Jobs are at stake", loss)
		}
		return nil
	})
	o.run(t, 0, accept)
	server.AwaitReady(t)
	o.env = &env{server: server, namespace: o.namespace, typed: clientset(t, server.Config(t)).JobSets(o.namespace)}
	if got := o.get(t, "kept"); got.UID != kept.UID {
		t.Errorf("the set that was in the backup has UID %s, want %s", got.UID, kept.UID)
	}
	plane.Aggregate(t, server)
	o.run(t, 0, o.witness.Command(t, "jobset-apiserver store accept --namespaces=missing --dry-run=client"))
	o.run(t, 0, o.witness.Command(t, "jobset-apiserver store accept --namespaces=missing"))
	o.run(t, 0, o.backup.Command(t, "jobset-apiserver store accept --namespaces=all --dry-run=client"))
	o.run(t, 0, o.backup.Command(t, "jobset-apiserver store accept --namespaces=all"))
	o.run(t, 0, o.upgrade.Command(t, "jobset-apiserver store migrate"))
	o.external(t, file)
	o.away(t, restored)
	for _, page := range []*runbook.Page{o.witness, o.backup, o.upgrade} {
		page.Done(t)
	}
}

// external backs up an external etcd, and makes the data of one of a backup.
func (o *operator) external(t *testing.T, file string) {
	t.Helper()
	etcd, target := plane.StartEtcd(t), filepath.Join(t.TempDir(), "data")
	backup := o.backup.Command(t, "jobset-apiserver store backup FILE --etcd-servers", "FILE", filepath.Join(t.TempDir(), "external.db"), "ADDRESS", etcd.Endpoint)
	o.run(t, 0, append(backup, "--etcd-cafile="+etcd.CAFile, "--etcd-certfile="+etcd.CertFile, "--etcd-keyfile="+etcd.KeyFile))
	o.run(t, 0, o.backup.Command(t, "etcdutl snapshot restore", "FILE", file, "DIRECTORY", target))
	if _, err := os.Stat(filepath.Join(target, "member")); err != nil {
		t.Error(err)
	}
}

// away does what is written about backups that leave the cluster, as far as it needs no pod.
func (o *operator) away(t *testing.T, data string) {
	t.Helper()
	credentials := t.TempDir()
	var files []string
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.WriteFile(filepath.Join(credentials, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, "="+name, "="+filepath.Join(credentials, name))
	}
	o.run(t, 0, append(o.backup.Command(t, "kubectl -n jobset-system create secret", files...), "--dry-run=client"))
	o.run(t, 0, append(o.backup.Command(t, "kubectl apply -k", "artifacts", "../../../artifacts"), "--dry-run=client"))

	words := o.backup.Command(t, "kubectl -n jobset-system exec", "/var/lib/jobset-apiserver/data", data)
	begin, end := slices.Index(words, "--")+1, slices.Index(words, ">")
	if begin < 1 || end < begin {
		t.Fatalf("the command must have a command of the server, and a file for its output: %q", words)
	}
	file := filepath.Join(t.TempDir(), words[end+1])
	output, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd := exec.CommandContext(t.Context(), plane.Binary, words[begin+1:end]...)
	cmd.Stdout = output
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	o.run(t, 0, []string{"jobset-apiserver", "store", "verify", file})
	// test/helm waits for the pod, and sends it a backup.
	o.backup.Command(t, "kubectl -n jobset-system wait")
	o.backup.Command(t, "kubectl -n jobset-system attach")
}

// createJob creates a Job that a set owns, as the controller does.
func (o *operator) createJob(t *testing.T, js *jobsetv1alpha2.JobSet) {
	t.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: js.Name + "-workers-0", Namespace: o.namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(js, jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet"))},
		},
		Spec: builders.JobSet("x", builders.WithJobs("workers", 1, 1)).Spec.ReplicatedJobs[0].Template.Spec,
	}
	job.Spec.Template.Spec.RestartPolicy = "Never"
	jobs := plane.Kube.BatchV1().Jobs(o.namespace)
	if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Otherwise the Job would wait for a garbage collector, which does not run here.
		background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		if err := jobs.Delete(context.WithoutCancel(t.Context()), job.Name, background); err != nil {
			t.Error(err)
		}
	})
}

// run runs a command with the credentials of the administrator and returns what it printed.
func (o *operator) run(t *testing.T, code int, words []string) string {
	t.Helper()
	program := plane.Binary
	if words[0] != "jobset-apiserver" {
		program = plane.Program(words[0])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, words[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+o.kubeconfig)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%s: exit code %d, want %d (%v)\n%s", strings.Join(words, " "), cmd.ProcessState.ExitCode(), code, err, out)
	}
	t.Logf("%s\n%s", strings.Join(words, " "), out)
	return string(out)
}
