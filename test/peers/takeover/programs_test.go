// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"bytes"
	"context"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// migration returns the command.
func migration(ctx context.Context, args ...string) *exec.Cmd { return cluster.Command(ctx, args...) }

// migrate runs the command, which must succeed, and returns what it printed.
func migrate(t *testing.T, args ...string) string {
	t.Helper()
	return cluster.Migrate(t, args...)
}

// startController starts our controller, with further flags.
func startController(t *testing.T, flags ...string) *framework.Process {
	t.Helper()
	return cluster.StartController(t, flags...)
}

// startServer starts our server, unless it runs. It runs until all tests have ended.
func startServer(t *testing.T) {
	t.Helper()
	if err := cluster.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// killed runs the command and kills it at a random moment after it has begun a step, by number. It returns whether the command
// was too fast, and has ended.
func killed(t *testing.T, random *rand.Rand, direction string, step int, flags ...string) (ended bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := migration(ctx, append([]string{direction}, flags...)...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		number, rest, found := strings.Cut(lines.Text(), " of ")
		at, err := strconv.Atoi(number)
		if !found || err != nil || at < step {
			continue
		}
		_, title, _ := strings.Cut(rest, ": ")
		after := time.Duration(random.IntN([]int{1, 30, 400}[random.IntN(3)])) * time.Millisecond
		t.Logf("%s: killing it %s after step %d has begun: %s", direction, after, at, title)
		time.Sleep(after)
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	if err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("migrate %s: %v\n%s", direction, err, messages.String())
	}
	return err == nil
}
