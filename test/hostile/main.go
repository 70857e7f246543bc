// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// hostile sends requests that mean harm to a local cluster whose API server and controller may use 1 GiB of memory each,
// and checks after each of them that both serve: a plain JobSet of another user is created, completes and is deleted.
// hack/hostile.sh starts the cluster and calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == allocate {
		useMemory(os.Args[2])
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	dir, script, only string
	memory            uint64
	bound             time.Duration
	full, list        bool
	every             int
}

func parse() (options, error) {
	var o options
	flag.StringVar(&o.dir, "cluster-dir", "", "Directory of a running cluster of hack/cluster.sh.")
	flag.StringVar(&o.script, "cluster-script", "hack/cluster.sh", "Script that starts programs of the cluster that ended.")
	flag.StringVar(&o.only, "only", "", "Regular expression: send only attacks whose names match.")
	flag.Uint64Var(&o.memory, "memory", 1<<30, "Limit on the memory of each program, in bytes.")
	flag.DurationVar(&o.bound, "bound", 3*time.Minute, "How long a plain JobSet may take from its creation to its deletion.")
	flag.BoolVar(&o.full, "full", false, "Send the attacks that take long too, and run a plain JobSet after each attack.")
	flag.BoolVar(&o.list, "list", false, "Print the names of all attacks and end.")
	flag.IntVar(&o.every, "every", 6, "Run a plain JobSet after so many attacks; 1 with --full.")
	flag.Parse()
	if o.full {
		o.every = 1
	}
	if o.every < 1 {
		return o, errors.New("--every: must be at least 1")
	}
	return o, nil
}

func run(ctx context.Context) error {
	o, err := parse()
	if err != nil {
		return err
	}
	chosen, err := o.choose(attacks())
	if err != nil {
		return err
	}
	if o.list {
		for _, a := range chosen {
			fmt.Println(a.name)
		}
		return nil
	}
	if err := checkLimit(o.memory); err != nil {
		return fmt.Errorf("the limit on memory does not hold: %w", err)
	}
	e, err := open(ctx, o.dir, o.script, o.memory, o.bound)
	if err != nil {
		return err
	}
	defer e.endLimits()
	if _, err := e.serves(ctx); err != nil {
		return fmt.Errorf("before the first attack: %w", err)
	}
	return e.sendAll(ctx, chosen, o.every)
}

// choose returns the attacks that the flags select.
func (o *options) choose(all []attack) ([]attack, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	return slices.DeleteFunc(all, func(a attack) bool {
		return !only.MatchString(a.name) || a.full && !o.full && o.only == ""
	}), nil
}

// sendAll sends the attacks one after the other and prints a row for each.
func (e *env) sendAll(ctx context.Context, chosen []attack, every int) error {
	fmt.Println("| attack | sent KiB | answer | received KiB | seconds | server MiB | controller MiB | plain JobSet |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	var broke []string
	for i, a := range chosen {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := e.strike(ctx, a, (i+1)%every == 0 || i == len(chosen)-1)
		fmt.Println(row)
		if err == nil {
			continue
		}
		broke = append(broke, a.name)
		fmt.Fprintf(os.Stderr, "%s: %v\n", a.name, err)
		if err := e.recover(ctx); err != nil {
			return fmt.Errorf("after %s: %w", a.name, err)
		}
	}
	if len(broke) > 0 {
		return fmt.Errorf("%d of %d attacks stopped a program or kept a plain JobSet from running: %s", len(broke), len(chosen), strings.Join(broke, "; "))
	}
	fmt.Fprintf(os.Stderr, "%d attacks; both programs went on serving\n", len(chosen))
	return nil
}

// strike sends one attack and looks at what became of both programs.
func (e *env) strike(ctx context.Context, a attack, look bool) (row string, err error) {
	if err := e.prepare(ctx); err != nil {
		return "", fmt.Errorf("making the victim: %w", err)
	}
	if err := e.forgetPeaks(); err != nil {
		return "", err
	}
	got, served, took, err := e.attack(ctx, a, look)
	peaks := e.peaks()
	if names := e.ended(); len(names) > 0 {
		err = errors.Join(fmt.Errorf("%s ended; see %s/logs", strings.Join(names, " and "), e.dir), err)
	}
	if err == nil {
		err = e.clean(ctx)
	}
	if err != nil {
		served = "**broken**"
	}
	return fmt.Sprintf("| %s | %d | %s | %d | %.1f | %s | %s |", a.name, got.sent>>10, got.what, got.received>>10, took.Seconds(),
		peaks, served), err
}

// attack sends an attack, and looks whether a plain JobSet runs afterwards, or meanwhile.
func (e *env) attack(ctx context.Context, a attack, look bool) (got answer, served string, took time.Duration, err error) {
	attacking, end := context.WithTimeout(ctx, 3*time.Minute)
	defer end()
	select {
	case <-e.underWay: // of an attack before, which was too late
	default:
	}
	began := time.Now()
	done := make(chan answer, 1)
	go func() { done <- a.send(attacking, e) }()
	if !a.held {
		got = <-done
		took = time.Since(began)
		if strings.Contains(got.what, "201") {
			e.observed(ctx)
		}
		if !look {
			return got, "not looked at", took, nil
		}
	}
	if a.tells {
		select {
		case <-e.underWay:
		case <-attacking.Done():
			return got, "", took, errors.New("the attack was not under way in time")
		}
	}
	plain, err := e.serves(ctx)
	if a.beside != nil {
		err = errors.Join(err, a.beside(ctx, e))
	}
	if a.held {
		end()
		got = <-done
		took = time.Since(began)
	}
	return got, fmt.Sprintf("%.1f s", plain.Seconds()), took, err
}

func (e *env) forgetPeaks() error {
	for _, p := range e.processes {
		if err := p.forgetPeak(); err != nil {
			return err
		}
	}
	return nil
}

// peaks returns the columns with the memory of the programs.
func (e *env) peaks() string {
	var peaks []string
	for _, p := range e.processes {
		peaks = append(peaks, fmt.Sprint(p.peak()))
	}
	return strings.Join(peaks, " | ")
}

// recover brings both programs back after an attack that succeeded, so that the next one is seen on its own.
func (e *env) recover(ctx context.Context) error {
	// A program that is on its way to its limit may end while this goes on.
	var errs []error
	for range 3 {
		err := e.restart(ctx)
		if err == nil {
			err = e.clean(ctx)
		}
		if err == nil {
			_, err = e.serves(ctx)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("a plain JobSet does not run any more, even with both programs started again: %w", errors.Join(errs...))
}
