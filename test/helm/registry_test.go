// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// node is the real node of the cluster.
const node = "real-1"

// TestInstallsFromRegistry makes a release of this tree, publishes it to a registry that the node can reach, and installs what was published.
func TestInstallsFromRegistry(t *testing.T) {
	removeEverything(t)
	prefix := registry(t) + "/team"
	release, published := filepath.Join(t.TempDir(), "release"), filepath.Join(t.TempDir(), "published")
	images(t, "release", "--source="+shared.Root, "--version=v0.0.0-published", "--revision="+commit(t), "--created=1700000000", "--ldflags=-s -w",
		"--platforms=linux/"+runtime.GOARCH, "--output="+release)
	images(t, "publish", "--release="+release, "--registry="+prefix, "--plain-http", "--output="+published)

	mustHelm(t, "install", "jobset", "oci://"+prefix+"/charts/jobset-apiserver", "--version", "0.0.0-published", "--plain-http")
	available(t)
	runSet(t)
	expectPulled(t, prefix)
	removeEverything(t)

	kubectl(t, "apply", "--server-side", "-f", filepath.Join(published, "install.yaml"))
	available(t)
	runSet(t)
	expectPulled(t, prefix)
}

// registry starts a registry, lets the node pull from it, and returns its host and port.
func registry(t *testing.T) string {
	t.Helper()
	router, err := localcluster.RouterOf(t.Context(), core, node)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "registry")
	command(t, "go", "build", "-C", filepath.Join(shared.Root, "hack", "images"), "-trimpath", "-ldflags=-s -w", "-o", program, "./registry")
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--address", router+":0", "--dir", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(strings.TrimSpace(line), "serving on ")
	if err := shared.PullPlain(node, host); err != nil {
		t.Fatal(err)
	}
	return host
}

// commit returns the commit of the tree, whose changes are part of the release of a test.
func commit(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(command(t, "git", "-C", shared.Root, "rev-parse", "HEAD"))
}

// images runs the program in hack/images.
func images(t *testing.T, args ...string) {
	t.Helper()
	t.Log(command(t, "go", append([]string{"run", "-C", filepath.Join(shared.Root, "hack", "images"), "-trimpath", "-buildvcs=false", "."}, args...)...))
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	binaries := os.Getenv("JOBSET_BINARIES")
	command(t, filepath.Join(binaries, "kubectl"), append([]string{"--kubeconfig", shared.Kubeconfig()}, args...)...)
}

// command runs a program, which must succeed, and returns what it printed.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	start := time.Now()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	t.Logf("%s %s took %s", filepath.Base(name), args[0], time.Since(start).Round(time.Millisecond))
	return string(out)
}

// expectPulled checks that the pods run images that the node has pulled from the registry by their digests.
func expectPulled(t *testing.T, prefix string) {
	t.Helper()
	pods, err := core.CoreV1().Pods(apiservice.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]bool{}
	for _, pod := range pods.Items {
		for i, status := range pod.Status.ContainerStatuses {
			image := pod.Spec.Containers[i].Image
			name, digest, pinned := strings.Cut(strings.TrimPrefix(image, prefix+"/"), "@")
			if !strings.HasPrefix(image, prefix+"/") || !pinned || !strings.HasSuffix(status.ImageID, digest) {
				t.Errorf("%s runs the image %s for %s, must be one of %s with a digest", pod.Name, status.ImageID, image, prefix)
			}
			programs[name] = true
		}
	}
	if !programs["jobset-apiserver"] || !programs["jobset-controller"] {
		t.Errorf("pods run %v", programs)
	}
}

// removeEverything uninstalls the release of Helm, if there is one, with the sets and the store, as docs/helm.md describes.
func removeEverything(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "the sets are deleted", func(ctx context.Context) error {
		err := jobsets.JobsetV1alpha2().JobSets("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		jobs, err := core.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(jobs.Items) > 0 {
			return fmt.Errorf("%d Jobs are left (%v)", len(jobs.Items), err)
		}
		return nil
	})
	if out, err := helm(t, "uninstall", "jobset", "--ignore-not-found", "--wait"); err != nil {
		t.Fatalf("helm uninstall: %v\n%s", err, out)
	}
	err := core.CoreV1().Namespaces().Delete(t.Context(), apiservice.Namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for _, name := range []string{"jobset-apiserver-store", "jobset-apiserver-lost-owners"} {
		err := core.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(t.Context(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	framework.Eventually(t, "the namespace is deleted", func(ctx context.Context) error {
		_, err := core.CoreV1().Namespaces().Get(ctx, apiservice.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%v)", err)
	})
	emptyVolumes(t)
}

// emptyVolumes empties the volumes whose claims were deleted, so that other claims can have them.
func emptyVolumes(t *testing.T) {
	t.Helper()
	volumes, err := core.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, volume := range volumes.Items {
		if volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Namespace != apiservice.Namespace {
			continue
		}
		if volume.Spec.HostPath == nil || !strings.HasPrefix(volume.Spec.HostPath.Path, shared.Dir) {
			t.Fatalf("volume %s must be a directory of the cluster", volume.Name)
		}
		entries, err := os.ReadDir(volume.Spec.HostPath.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if err := os.RemoveAll(filepath.Join(volume.Spec.HostPath.Path, entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
		volume.Spec.ClaimRef = nil
		if _, err := core.CoreV1().PersistentVolumes().Update(t.Context(), &volume, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
