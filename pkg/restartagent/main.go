// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// programName is the name of the file of the program.
const programName = "jobset-restart-agent"

const usage = `usage: jobset-restart-agent           run in a pod of a JobSet; the environment is described in docs/in-place-restart.md
       jobset-restart-agent copy DIR  copy this program into a directory, such as a volume that the container of the worker mounts`

// mistakePause is how long a sidecar waits before it ends because of a mistake. kubelet restarts all containers of its
// pod at once, and would do so in a loop.
const mistakePause = 10 * time.Second

// Main runs the agent with the environment of the process, and returns its exit code.
func Main(args []string) int {
	// From here on no signal is lost, and a second one does not end the agent before its worker.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	switch {
	case len(args) == 0:
	case len(args) == 2 && args[0] == "copy":
		if err := copyProgram(args[1]); err != nil {
			return complain(err)
		}
		return 0
	default:
		return complain(errors.New(usage))
	}
	code, err := start(signals)
	if err != nil {
		complain(err)
		if _, worker := os.LookupEnv(commandVariable); !worker {
			pause(signals, mistakePause)
		}
	}
	return code
}

// complain prints an error, each of its lines as a sentence of its own, and returns the exit code for it.
func complain(err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(os.Stderr, "Error:", line)
	}
	return 1
}

// pause waits, unless a signal comes first.
func pause(signals <-chan os.Signal, d time.Duration) {
	select {
	case <-signals:
	case <-time.After(d):
	}
}

func start(signals <-chan os.Signal) (int, error) {
	config, err := readConfig(os.LookupEnv, accountDirectory)
	if err != nil {
		return 1, err
	}
	connection, err := rest.InClusterConfig()
	if err != nil {
		return 1, fmt.Errorf("the agent must run in a pod with a token of its service account in %s: %w", accountDirectory, err)
	}
	return Run(klog.NewContext(context.Background(), klog.Background()), config, connection, signals)
}

// Run runs an agent until it ends, and returns its exit code. An error is the reason why the agent could not go on. The
// signals end it in good order; the end of the context stops its requests only.
func Run(ctx context.Context, config *Config, connection *rest.Config, signals <-chan os.Signal) (int, error) {
	client, err := newClient(config, connection)
	if err != nil {
		return 1, err
	}
	return newAgent(config, client, signals).run(ctx)
}

// copyProgram copies this program into a directory.
func copyProgram(dir string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	file, err := os.OpenFile(filepath.Join(dir, programName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, self)
	return errors.Join(err, file.Close())
}
