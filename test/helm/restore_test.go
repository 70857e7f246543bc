// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
)

const restorePod = "jobset-apiserver-restore"

// TestRestoresInPod restores a backup with the pod in artifacts/restore/stdin, step by step as docs/operations/backup.md says.
func TestRestoresInPod(t *testing.T) {
	removeEverything(t)
	chart := filepath.Join(shared.Root, "charts", "jobset-apiserver")
	mustHelm(t, "install", "jobset", chart, "--set", "image.local=true,image.tag=v0.0.0-local")
	available(t)
	before := runSet(t)
	backup := filepath.Join(t.TempDir(), "jobset.db")
	server := []string{"exec", "jobset-apiserver-0", "--", "jobset-apiserver", "store"}
	stream(t, os.DevNull, backup, append(server, "backup", "-", "--data-dir=/var/lib/jobset-apiserver/data")...)
	kubectl(t, "label", "jobset", "running", "since=backup")

	inNamespace := func(args ...string) { kubectl(t, append([]string{"--namespace", apiservice.Namespace}, args...)...) }
	inNamespace("scale", "statefulset", "jobset-apiserver", "--replicas=0")
	inNamespace("wait", "--for=delete", "pod/jobset-apiserver-0", "--timeout=10m")
	kubectl(t, "apply", "-k", restoring(t))
	inNamespace("wait", "--for=condition=Ready", "pod/"+restorePod, "--timeout=10m")
	printed := filepath.Join(t.TempDir(), "printed")
	stream(t, backup, printed, "attach", "-i", restorePod)
	if content, err := os.ReadFile(printed); err == nil {
		t.Logf("the pod printed: %s", content)
	}
	inNamespace("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/"+restorePod, "--timeout=10m")
	inNamespace("delete", "pod", restorePod)
	inNamespace("scale", "statefulset", "jobset-apiserver", "--replicas=1")

	refusal := rolledBack(t)
	accept := append(server, "accept", "--uuid="+refusal.NewUUID, fmt.Sprintf("--revision=%d", refusal.Revision))
	stream(t, os.DevNull, os.DevNull, accept...)
	available(t)
	set, err := jobsets.JobsetV1alpha2().JobSets("default").Get(t.Context(), "running", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, found := set.Labels["since"]; found || string(set.UID) != before.set {
		t.Errorf("the set has the UID %s and the labels %v, must have the UID %s and no change since the backup", set.UID, set.Labels, before.set)
	}
	if after := state(t); after.job != before.job {
		t.Errorf("the Job must go on: before %+v, after %+v", before, after)
	}
}

// stream runs kubectl with files as its input and output.
func stream(t *testing.T, input, output string, args ...string) {
	t.Helper()
	in, errIn := os.Open(input)
	out, errOut := os.OpenFile(output, os.O_CREATE|os.O_WRONLY, 0o600)
	if err := errors.Join(errIn, errOut); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var messages strings.Builder
	args = append([]string{"--kubeconfig", shared.Kubeconfig(), "--namespace", apiservice.Namespace}, args...)
	cmd := exec.CommandContext(t.Context(), kubectlProgram(), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &messages
	if err := errors.Join(cmd.Run(), out.Close()); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, messages.String())
	}
}

// restoring writes a kustomization with the pod that restores and the image of the installation.
func restoring(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pod, err := filepath.Rel(dir, filepath.Join(shared.Root, "artifacts", "restore", "stdin"))
	if err != nil {
		t.Fatal(err)
	}
	content := "resources: [" + pod + "]\n" +
		"images: [{name: jobset-apiserver, newName: docker.io/library/jobset-apiserver, newTag: v0.0.0-local}]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rolledBack waits until the server refuses the store because it is older than the record in the cluster.
func rolledBack(t *testing.T) *witness.Refusal {
	t.Helper()
	var refusal *witness.Refusal
	framework.Eventually(t, "the server refuses the store", func(ctx context.Context) error {
		cm, err := core.CoreV1().ConfigMaps(witness.Namespace).Get(ctx, witness.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		record, err := witness.Read(cm)
		if err != nil {
			return err
		}
		if refusal = record.Refusal; refusal == nil || refusal.Reason != witness.ReasonRolledBack {
			return fmt.Errorf("the record is %+v", record)
		}
		return nil
	})
	return refusal
}
