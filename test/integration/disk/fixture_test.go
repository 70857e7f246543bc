// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/replicas"
	"github.com/jobset-apiserver/jobset-apiserver/test/history"
)

// stepTimeout is how long a step may take, on a machine that does other things too.
var stepTimeout = framework.StepTimeout()

// checkLimit bounds the check of an object.
const checkLimit = 5 * time.Minute

// fixture is a server with its data in a directory, and clients that write to it.
type fixture struct {
	framework.Test
	set    *replicas.Set
	server *replicas.Server
	run    *history.Run
}

// begin starts the server and the clients, and waits until they have written something.
func begin(t *testing.T, dir string) *fixture {
	t.Helper()
	// The store of an earlier test is gone, and with it the witness of it.
	if err := framework.ForgetStore(t.Context(), plane.Kube); err != nil {
		t.Fatal(err)
	}
	settings := replicas.Settings{
		Binary: plane.Binary, Kubeconfig: plane.ServerKubeconfig(t), Dir: t.TempDir(),
		Flags: append(framework.Embedded(dir), "--shutdown-delay-duration=0s"), Readiness: replicas.Quick,
	}
	set, err := replicas.Start(t.Context(), settings, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	plane.AggregatePort(t, set.Port, set.CA)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "disk-"}}
	namespace, err = plane.Kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("repeat the choices with -seed=%d", *seed)
	run, err := history.Start(t.Context(), history.Defaults(plane.Config, namespace.Name, *seed))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Test: framework.Test{T: t}, set: set, server: set.Servers[0], run: run}
	f.answers(300)
	return f
}

// answers waits until so many more requests were answered.
func (f *fixture) answers(more int) {
	f.Helper()
	want := f.run.Acknowledged() + more
	f.eventually("requests are answered", func() error {
		if got := f.run.Acknowledged(); got < want {
			return fmt.Errorf("%d of %d", got, want)
		}
		return nil
	})
}

func (f *fixture) eventually(what string, check func() error) {
	f.Helper()
	framework.Eventually(f.T, what, func(context.Context) error { return check() })
}

// ends waits until the server has ended by itself, with an error, and returns its last words: what it wrote since the fault.
func (f *fixture) ends(before string) string {
	f.Helper()
	process := f.server.Process()
	if code := process.Wait(f.T); code <= 0 {
		f.Errorf("the server ended with code %d (%s), must end by itself with an error", code, process.State())
	}
	words := strings.TrimPrefix(process.Log(), before)
	f.Logf("the server wrote at the end:\n%s", words[max(0, len(words)-3000):])
	return words
}

// restart starts the server again on the same directory.
func (f *fixture) restart() {
	f.Helper()
	if err := f.server.Start(); err != nil {
		f.Fatal(err)
	}
	if err := f.server.AwaitEndpoint(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// checkHistory ends the clients and checks what they saw.
func (f *fixture) checkHistory() *history.History {
	f.Helper()
	h, err := f.run.Finish(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	report := history.Check(h, checkLimit)
	f.Log(report, h.Reasons())
	undecided := report.Counts[history.Undecided]
	delete(report.Counts, history.Undecided)
	if !report.OK() {
		f.Error("the server broke its promises")
	} else if undecided > 0 {
		f.Skipf("the histories of %d objects could not be checked within %s", undecided, checkLimit)
	}
	for _, kind := range []history.Kind{history.Create, history.Update, history.UpdateStatus, history.Delete} {
		if h.Count(kind, history.Done) == 0 {
			f.Errorf("no %s was acknowledged: the history proves too little", kind)
		}
	}
	return h
}

// inject makes system calls of the server fail or take long, until the returned function is called.
func (f *fixture) inject(calls, how string) func() {
	f.Helper()
	release, err := framework.Inject(f.Context(), filepath.Join(f.TempDir(), "strace.log"), f.server.Process(), calls, how)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = release() })
	return func() {
		if err := release(); err != nil {
			f.Error(err)
		}
	}
}

// config reaches the server as the kubelet does.
func (f *fixture) config() *rest.Config {
	return &rest.Config{Host: "https://" + f.server.Address(), Timeout: 10 * time.Second, TLSClientConfig: rest.TLSClientConfig{CAData: f.set.CA}}
}
