// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// stall is how long a disk does nothing.
const stall = 10 * time.Second

var diskFaults = []memberFault{
	{name: "disk of the leader stalls", kind: "stall", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.stallDisk(ctx, e.leader)
	}},
	{name: "disk of a follower stalls", kind: "stall", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.stallDisk(ctx, e.follower)
	}},
	{name: "disk of the leader full", kind: "full", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.fillDisk(ctx, e.leader)
	}},
	{name: "disk of a follower full", kind: "full", root: true, happen: func(ctx context.Context, e *embedded) error {
		return e.fillDisk(ctx, e.follower)
	}},
}

// stallDisk delays each synchronization of a member's disk.
func (e *embedded) stallDisk(ctx context.Context, choose func(context.Context) (int, error)) error {
	chosen, err := choose(ctx)
	if err != nil {
		return err
	}
	release, err := framework.Inject(ctx, e.file("logs/strace.log"), e.servers.Servers[chosen].Process(), "fsync,fdatasync", "delay_enter=10s")
	if err != nil {
		return err
	}
	time.Sleep(stall)
	return release()
}

// fillDisk takes all space from the file system of a member, whose server ends. It is started again when there is space.
func (e *embedded) fillDisk(ctx context.Context, choose func(context.Context) (int, error)) error {
	chosen, err := choose(ctx)
	if err != nil {
		return err
	}
	server, filler := e.servers.Servers[chosen], filepath.Join(e.volume(chosen), "filler")
	defer os.Remove(filler)
	if err := framework.Fill(filler); err != nil {
		return err
	}
	select {
	case <-server.Process().Done():
	case <-time.After(framework.StepTimeout()):
		return errors.New("the server goes on with a full disk")
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	return e.away(ctx, restartPause, chosen)
}
