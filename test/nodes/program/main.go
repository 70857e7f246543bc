// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command program is the one program in the image of tests on real nodes. Without arguments it waits for SIGTERM, which is what holds the namespaces of a pod.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/nodes/program/allreduce"
)

const usage = `usage: program                    wait for SIGTERM
       program exit CODE          end with this exit code
       program fill               take memory until something ends it
       program meet NAME...       end once this pod and each of those with these names have spoken to each other
       program append FILE LINES  add a line to the file, and succeed if it has LINES then; any is any number
       program serve              answer requests over HTTP until it is told to end or not to be ready; with LWS_GROUP_SIZE, for a group
       program load URL           request the URL 20 times a second, and count
       program allreduce FLAGS    be a worker of a training run; --help lists the flags`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	switch {
	case len(args) == 0:
		<-ctx.Done()
		return 0, nil
	case args[0] == "exit" && len(args) == 2:
		return strconv.Atoi(args[1])
	case args[0] == "fill" && len(args) == 1:
		return fill(ctx), nil
	case args[0] == "meet" && len(args) > 1:
		return codeOf(meet(ctx, args[1:]))
	case args[0] == "append" && len(args) == 3:
		return codeOf(appendLine(args[1], args[2]))
	case args[0] == "serve" && len(args) == 1:
		return serve(ctx)
	case args[0] == "load" && len(args) == 2:
		return codeOf(load(ctx, args[1]))
	case args[0] == "allreduce":
		return work(ctx, args[1:])
	}
	return 2, errors.New(usage)
}

// terminated is the exit code of programs that must not count as completed when they are stopped by SIGTERM.
const terminated = 128 + int(syscall.SIGTERM)

func codeOf(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// work runs a worker.
func work(ctx context.Context, args []string) (int, error) {
	config, err := allreduce.Parse(args)
	if err != nil {
		return 2, err
	}
	if err := allreduce.Run(ctx, config); ctx.Err() != nil {
		return terminated, ctx.Err()
	} else if err != nil {
		return 1, err
	}
	return 0, nil
}

// fill takes and uses 8 MiB at a time.
func fill(ctx context.Context) int {
	var taken [][]byte
	for ctx.Err() == nil {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		taken = append(taken, block)
		time.Sleep(10 * time.Millisecond)
	}
	return len(taken) & 1
}
