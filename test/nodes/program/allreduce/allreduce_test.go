// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package allreduce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// workers returns the configurations of workers that share a directory, on addresses of this machine.
func workers(t *testing.T, jobs, pods int) []Config {
	t.Helper()
	dir := t.TempDir()
	ports, err := localcluster.FreePorts(jobs * pods)
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, port := range ports {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	var all []Config
	for rank := range addresses {
		all = append(all, Config{
			Name: "w", Subdomain: "s", Jobs: jobs, Pods: pods, Job: rank / pods, Pod: rank % pods, Dir: dir, Steps: 20, Elements: 7, Every: 4,
			RestartTimeout: time.Millisecond, addresses: addresses,
		})
	}
	return all
}

// run runs workers until all of them have ended, and returns their errors.
func run(ctx context.Context, workers []Config) []error {
	errs := make([]error, len(workers))
	done := make(chan struct{})
	for i, c := range workers {
		go func() { errs[i] = Run(ctx, c); done <- struct{}{} }()
	}
	for range workers {
		<-done
	}
	return errs
}

func TestSum(t *testing.T) {
	for _, size := range [][2]int{{1, 2}, {3, 1}, {2, 3}, {5, 2}} {
		t.Run(fmt.Sprintf("%d jobs of %d", size[0], size[1]), func(t *testing.T) {
			all := workers(t, size[0], size[1])
			if err := errors.Join(run(t.Context(), all)...); err != nil {
				t.Fatal(err)
			}
			got, err := Result(all[0].Dir)
			if want := Expected(len(all), 20, 7); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, error %v, want %v", got, err, want)
			}
		})
	}
}

// TestSumAfterLossOfWorker stops one worker in the middle. The others end with an error, and the next attempt goes on from the checkpoint.
func TestSumAfterLossOfWorker(t *testing.T) {
	all := workers(t, 2, 2)
	for i := range all {
		all[i].StepTime = 5 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error)
	go func() { lost <- Run(ctx, all[3]) }()
	go func() {
		for {
			if s, err := Checkpoint(all[0].Dir, 7); err == nil && s.Step > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	for rank, err := range run(t.Context(), all[:3]) {
		if err == nil {
			t.Errorf("worker %d has succeeded without the others", rank)
		}
	}
	if err := <-lost; !errors.Is(err, context.Canceled) {
		t.Errorf("the worker that was stopped: %v", err)
	}
	begin, err := Checkpoint(all[0].Dir, 7)
	if err != nil || begin.Step == 0 {
		t.Fatalf("checkpoint %v, error %v", begin, err)
	}
	for i := range all {
		all[i].Attempt++
	}
	if err := errors.Join(run(t.Context(), all)...); err != nil {
		t.Fatal(err)
	}
	if got, err := Result(all[0].Dir); err != nil || !reflect.DeepEqual(got, Expected(4, 20, 7)) {
		t.Errorf("got %v, error %v", got, err)
	}
}

func TestCheckpointOfAnotherSize(t *testing.T) {
	dir := t.TempDir()
	if err := (State{Step: 3, Elements: []uint64{1}}).save(filepath.Join(dir, checkpointFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Checkpoint(dir, 2); err == nil || err.Error() != "the checkpoint has 1 elements, not 2" {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("files %v, error %v", files, err)
	}
}

func TestParse(t *testing.T) {
	for variable, value := range map[string]string{"JOB_INDEX": "1", "JOB_COMPLETION_INDEX": "2", "RESTART_ATTEMPT": "3"} {
		t.Setenv(variable, value)
	}
	good := "--name=run-w --subdomain=run --jobs=2 --pods=3 --checkpoints=/c"
	c, err := Parse(strings.Fields(good))
	if err != nil {
		t.Fatal(err)
	}
	if c.Rank() != 5 || c.address(4) != "run-w-1-1.run:7001" || c.next() != 0 || c.previous() != 4 || c.hello(c.previous()) != "attempt 3 rank 4\n" {
		t.Errorf("%+v", c)
	}
	for args, want := range map[string]string{
		"--name=x":          "--name, --subdomain and --checkpoints must be set",
		good + " --steps=0": "there must be two workers or more, and one or more of steps, elements and --checkpoint-every",
		good + " --jobs=1":  "there is no worker 2 in Job 1",
	} {
		if _, err := Parse(strings.Fields(args)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	t.Setenv("JOB_INDEX", "")
	if _, err := Parse(strings.Fields(good)); err == nil || !strings.HasPrefix(err.Error(), "JOB_INDEX: ") {
		t.Error(err)
	}
}
