// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command program is the one program in the image of tests on real nodes. Without arguments it waits for SIGTERM, which
// is what holds the namespaces of a pod.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/nodes/program/allreduce"
)

const usage = `usage: program                    wait for SIGTERM
       program exit CODE          end with this exit code
       program fill               take memory until something ends it
       program work               write "begins", and wait for SIGTERM
       program -c COMMAND         run a command of words without quotes, as a shell does
       program meet NAME...       end once this pod and each of those with these names have spoken to each other
       program append FILE LINES  add a line to the file, and succeed if it has LINES then; any is any number
       program count FILE         append the time to the file every second until a signal ends it
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

// commands are the commands of the usage, with the number of their arguments.
var commands = map[string]struct {
	least, most int
	run         func(ctx context.Context, args []string) (int, error)
}{
	"exit": {1, 1, func(_ context.Context, args []string) (int, error) { return strconv.Atoi(args[0]) }},
	"fill": {0, 0, func(ctx context.Context, _ []string) (int, error) { return fill(ctx), nil }},
	"work": {0, 0, func(ctx context.Context, _ []string) (int, error) {
		fmt.Println("begins")
		// The name says that signals are heeded from now on.
		if err := os.WriteFile("/proc/self/comm", []byte("working"), 0o600); err != nil {
			return 1, err
		}
		<-ctx.Done()
		return 0, nil
	}},
	"-c":        {1, 1, func(_ context.Context, args []string) (int, error) { return shell(args[0]) }},
	"meet":      {1, math.MaxInt, func(ctx context.Context, args []string) (int, error) { return codeOf(meet(ctx, args)) }},
	"append":    {2, 2, func(_ context.Context, args []string) (int, error) { return codeOf(appendLine(args[0], args[1])) }},
	"count":     {1, 1, func(ctx context.Context, args []string) (int, error) { return count(ctx, args[0]) }},
	"serve":     {0, 0, func(ctx context.Context, _ []string) (int, error) { return serve(ctx) }},
	"load":      {1, 1, func(ctx context.Context, args []string) (int, error) { return codeOf(load(ctx, args[0])) }},
	"allreduce": {0, math.MaxInt, work},
}

func run(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		<-ctx.Done()
		return 0, nil
	}
	command, known := commands[args[0]]
	if n := len(args) - 1; !known || n < command.least || n > command.most {
		return 2, errors.New(usage)
	}
	return command.run(ctx, args[1:])
}

// shell becomes the program that the command names.
func shell(command string) (int, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return 2, errors.New(usage)
	}
	return 1, syscall.Exec(words[0], words, os.Environ())
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
