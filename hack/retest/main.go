// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// retest runs tests as go test does, and repeats those that failed once, alone, after everything else has run. A test that fails
// twice is a failure; a test that passes the second time is flaky, which is shown and recorded.
//
//	retest run -state FILE -- ARGUMENTS OF GO TEST
//	retest again -state FILE [-log FILE]
//	retest once -- ARGUMENTS OF GO TEST
//
// `run` prints what go test prints and appends to FILE what has to be repeated: it exits with 0 then, because `again` decides. It
// exits with 1 if repeating could hide a defect: if a package did not compile, a test binary panicked, was killed or ran into -timeout, a
// package passed without running a test or although one failed, no package with tests matches an argument, go test was killed, a test of
// safety failed (see test/framework/tier), or more than 5 tests failed in all runs that share FILE. Flags that go test does not know are
// written as -flag=value or follow -args.
//
// `again` repeats each package of FILE with the tests that failed in it, one test at a time, with the flags and the variables
// JOBSET_*, CLUSTER_*, CGO_ENABLED and GOFLAGS of the first run. A package that failed before its first test is repeated whole. A
// package that failed after its last test had passed is reported only. `again` exits with 1 if a test failed again, more than 3
// tests are flaky, no test passed, FILE has no run, or a run with FILE exited with 1. It appends flaky tests to the log, with the date and
// the commit. The last lines that it prints, at most 20, are a summary.
//
// `once` repeats nothing. It exits with 1 if a test failed, if stopping failed after the tests, for each reason for which `run` does, or if
// no test passed. With -run or -skip, packages without a test that is selected count as tested. With -v it prints what go test -v prints.
//
// Whoever calls retest names a FILE that is missing or empty at the first run, and runs both commands in the same directory. Runs with one
// FILE may go on at the same time. SIGINT and SIGTERM interrupt go test and the tests, and retest waits until they end.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	code, err := command(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "retest:", err)
		code = 1
	}
	os.Exit(code)
}

// command runs one of the commands, and returns its exit code.
func command(args []string, stdout, stderr io.Writer) (int, error) {
	if len(args) == 0 {
		return 0, errors.New("the first argument must be run, again or once")
	}
	flags := flag.NewFlagSet("retest "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	state := flags.String("state", "", "file with the tests that are repeated")
	switch args[0] {
	case "run":
		if err := flags.Parse(args[1:]); err != nil {
			return 0, err
		}
		if *state == "" {
			return 0, errors.New("-state must name a file")
		}
		return run(*state, flags.Args(), stdout, stderr)
	case "again":
		log := flags.String("log", "", "file to which flaky tests are appended")
		if err := flags.Parse(args[1:]); err != nil {
			return 0, err
		}
		if *state == "" || flags.NArg() > 0 {
			return 0, errors.New("-state must name a file, and no other arguments are allowed")
		}
		return again(*state, *log, stdout, stderr)
	case "once":
		if err := flags.Parse(args[1:]); err != nil {
			return 0, err
		}
		if *state != "" {
			return 0, errors.New("once has no -state")
		}
		return once(flags.Args(), stdout, stderr)
	}
	return 0, fmt.Errorf("the first argument must be run, again or once, and is %q", args[0])
}
