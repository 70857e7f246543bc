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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/members"
	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// TestInstallsFromRegistry makes a release of this tree, publishes it to a registry that the nodes can reach, and installs what was
// published, with Helm and with kubectl, with one server and with three. Then it installs from source, as make install-from-source does.
func TestInstallsFromRegistry(t *testing.T) {
	prefix := registry(t) + "/team"
	release, published := filepath.Join(t.TempDir(), "release"), filepath.Join(t.TempDir(), "published")
	images(t, "release", "--source="+shared.Root, "--version=v0.0.0-published", "--revision="+commit(t), "--created=1700000000", "--ldflags=-s -w",
		"--platforms=linux/"+runtime.GOARCH, "--output="+release)
	images(t, "publish", "--release="+release, "--registry="+prefix, "--plain-http", "--output="+published)
	chart := []string{"install", "jobset", "oci://" + prefix + "/charts/jobset-apiserver", "--version", "0.0.0-published", "--plain-http"}

	installs(t, "helm install", prefix, func() { mustHelm(t, chart...) })
	installs(t, "kubectl apply", prefix, func() { kubectl(t, "apply", "--server-side", "-f", filepath.Join(published, "install.yaml")) })
	installs(t, "helm install of three servers", prefix, func() { mustHelm(t, append(chart, "--set", "apiserver.replicas=3")...) })
	threeMembers(t)
	installs(t, "kubectl apply of three servers", prefix, func() {
		kubectl(t, "apply", "--server-side", "-f", filepath.Join(published, "manifests", "embedded-ha.yaml"))
	})
	threeMembers(t)
	installs(t, "make install-from-source", prefix, func() { fromSource(t, prefix) })
	removeEverything(t)
}

// installs removes what is installed, installs in one way, and checks that the programs come from the registry and work.
func installs(t *testing.T, way, prefix string, install func()) {
	t.Helper()
	removeEverything(t)
	for _, node := range nodes {
		if err := shared.ForgetImages(node, prefix); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	install()
	available(t)
	answer := time.Since(start)
	rolledOut(t)
	t.Logf("%s: the APIs answer after %s, and all pods are ready after %s", way, answer.Round(100*time.Millisecond), time.Since(start).Round(100*time.Millisecond))
	runSet(t)
	completes(t)
	expectPulled(t, prefix)
}

// completes checks that a set runs to completion.
func completes(t *testing.T) {
	t.Helper()
	createSet(t, "completed", "exit", "0")
	framework.Eventually(t, "the set has completed", func(ctx context.Context) error {
		set, err := jobsets.JobsetV1alpha2().JobSets("default").Get(ctx, "completed", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if set.Status.TerminalState != string(jobsetv1alpha2.JobSetCompleted) {
			return fmt.Errorf("status is %+v", set.Status)
		}
		return nil
	})
}

// threeMembers checks that three servers run on three nodes, and that all of them are members of the store.
func threeMembers(t *testing.T) {
	t.Helper()
	members.AwaitThree(t, kubectlOutput)
	pods, err := core.CoreV1().Pods(apiservice.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=jobset-apiserver"})
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]string{}
	for _, pod := range pods.Items {
		on[pod.Spec.NodeName] = pod.Name
	}
	if len(pods.Items) != len(nodes) || len(on) != len(nodes) {
		t.Errorf("%d servers run on %v, must be one on each of %v", len(pods.Items), on, nodes)
	}
}

// fromSource calls what make install-from-source calls.
func fromSource(t *testing.T, prefix string) {
	t.Helper()
	t.Setenv("PATH", os.Getenv("JOBSET_BINARIES")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for name, value := range map[string]string{
		"REGISTRY": prefix, "PLAIN_HTTP": "true", "VERSION": "v0.0.0-source", "LDFLAGS": "-s -w", "PLATFORMS": "linux/" + runtime.GOARCH,
		"OUTPUT": filepath.Join(t.TempDir(), "images"), "KUBECONFIG": shared.Kubeconfig(),
	} {
		t.Setenv(name, value)
	}
	command(t, filepath.Join(shared.Root, "hack", "images.sh"), "install")
}

// registry starts a registry, lets the nodes pull from it, and returns its host and port.
func registry(t *testing.T) string {
	t.Helper()
	router, err := localcluster.RouterOf(t.Context(), core, nodes[0])
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
	for _, node := range nodes {
		if err := shared.PullPlain(node, host); err != nil {
			t.Fatal(err)
		}
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
	command(t, kubectlProgram(), append([]string{"--kubeconfig", shared.Kubeconfig()}, args...)...)
}

// kubectlOutput runs a command and returns what it printed.
func kubectlOutput(ctx context.Context, args ...string) (string, error) {
	var messages strings.Builder
	cmd := exec.CommandContext(ctx, kubectlProgram(), append([]string{"--kubeconfig", shared.Kubeconfig()}, args...)...)
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, messages.String())
	}
	return string(out), nil
}

func kubectlProgram() string { return filepath.Join(os.Getenv("JOBSET_BINARIES"), "kubectl") }

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

// expectPulled checks that the pods run images that the nodes have pulled from the registry by their digests.
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
