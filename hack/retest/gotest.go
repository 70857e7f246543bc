// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// results are the packages that a run of go test has tested.
type results struct {
	packages    []*tested
	interrupted bool
	// problem is why go test failed, if no package is the reason.
	problem string
	// verbose means that all output of tests is printed.
	verbose bool
}

// goTest runs go test with the arguments and the environment, and prints what it prints without -json.
func goTest(args arguments, env []string, stdout, stderr io.Writer) (*results, error) {
	// This program handles signals from here on, so that none ends retest while the tests run.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	cmd := exec.Command("go", args.command()...)
	cmd.Env, cmd.Stderr = env, stderr
	// With a process group of its own, the tests get each signal from here and only once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	interrupted := forward(signals, cmd.Process.Pid)
	r, readErr := read(out, stdout, args.has("v"))
	if readErr != nil {
		_, _ = io.Copy(io.Discard, out)
	}
	err = cmd.Wait()
	r.interrupted = interrupted()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	r.problem = r.reason(args, exit)
	return r, readErr
}

// reason returns why the run means nothing, or only that some tests failed. A go test that ends in another way than with 1, such as by a
// signal, has not tested the remaining packages.
func (r *results) reason(args arguments, exit *exec.ExitError) string {
	failed := slices.ContainsFunc(r.packages, func(p *tested) bool { return p.action == "fail" })
	if exit != nil && (!failed || exit.ExitCode() != 1) {
		return "go test: " + exit.Error()
	}
	for _, pattern := range args.packages {
		if !slices.ContainsFunc(r.packages, func(p *tested) bool { return p.action != "skip" && matches(pattern, p.name) }) {
			return "go test: no package with tests matches " + pattern
		}
	}
	if len(r.packages) == 0 {
		return "go test: no package was tested"
	}
	return ""
}

// forward interrupts the process group at each signal. The function that it returns ends that, and says whether there was a signal.
func forward(signals <-chan os.Signal, group int) func() bool {
	ended, interrupted := make(chan struct{}), make(chan bool)
	go func() {
		found := false
		for {
			select {
			case <-signals:
				found = true
				// SIGTERM would end go test at once, and with it the output of tests that have yet to clean up. At SIGINT it waits for them.
				_ = syscall.Kill(-group, syscall.SIGINT)
			case <-ended:
				interrupted <- found
				return
			}
		}
	}()
	return func() bool {
		close(ended)
		return <-interrupted
	}
}

// read follows the output of go test -json. It prints all output of tests if verbose is true.
func read(in io.Reader, stdout io.Writer, verbose bool) (*results, error) {
	r := &results{verbose: verbose}
	running := map[string]*tested{}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			return r, fmt.Errorf("reading the output of go test: %w", err)
		}
		if line != "" {
			r.line(line, running, stdout)
		}
		if err == io.EOF {
			break
		}
	}
	// Packages do not end if go test does not wait for them.
	for _, p := range running {
		p.handle(event{Action: "fail"})
		r.ended(p, stdout)
	}
	return r, nil
}

// line handles a line of the output.
func (r *results) line(line string, running map[string]*tested, stdout io.Writer) {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprint(stdout, line)
		return
	}
	if e.Package == "" {
		fmt.Fprint(stdout, e.Output)
		return
	}
	p := running[e.Package]
	if p == nil {
		p = newTested(e.Package)
		running[e.Package] = p
	}
	if r.verbose && e.Action == "output" {
		p.all += e.Output
	}
	if len(running) == 1 { // lines of packages that are tested at the same time are not mixed
		p.show(stdout)
	}
	if p.handle(e) {
		delete(running, e.Package)
		r.ended(p, stdout)
	}
}

// ended notes that a package has been tested.
func (r *results) ended(p *tested, stdout io.Writer) {
	if p.show(stdout); !r.verbose {
		fmt.Fprint(stdout, p.report())
	}
	r.packages = append(r.packages, p)
}
