// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// following is a command of the plugin that runs until it is stopped, or until what it follows has ended.
type following struct {
	k      *kubectl
	lock   sync.Mutex
	output bytes.Buffer
	done   chan error
}

func (f *following) Write(p []byte) (int, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.output.Write(p)
}

func (f *following) String() string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.output.String()
}

// follow starts the plugin. It ends with the test at the latest.
func (k *kubectl) follow(args ...string) *following {
	k.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{k: k, done: make(chan error, 1)}
	cmd := exec.CommandContext(ctx, k.cluster.Program("kubectl-jobset"), append([]string{"--namespace", k.namespace}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig)
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		f.done <- cmd.Wait()
		close(ended)
	}()
	k.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}

// shows waits until the command has written the text.
func (f *following) shows(text string) {
	f.k.Helper()
	f.k.eventually(func() string {
		if got := f.String(); !strings.Contains(got, text) {
			return fmt.Sprintf("%q is not in:\n%s", text, got)
		}
		return ""
	})
}

// ends waits until the command has ended, and fails the test unless that is a success.
func (f *following) ends() {
	f.k.Helper()
	select {
	case err := <-f.done:
		if err != nil {
			f.k.Errorf("the command ended with %v:\n%s", err, f)
		}
	case <-time.After(framework.StepTimeout()):
		f.k.Fatalf("the command goes on:\n%s", f)
	}
}
