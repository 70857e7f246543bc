// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Test is a test whose helpers fail it, and may be called in a check of Eventually all the same: there, an error ends only the check,
// which is repeated, and the test fails if the last one fails. That holds in the goroutine of the check, for every Test and every copy
// of it. In any other goroutine, an error fails the test.
type Test struct{ *testing.T }

// endOfCheck is the panic that ends a check. It never leaves attempt.
type endOfCheck struct{ problem string }

// checks counts the checks that run, one within another, by goroutine.
var checks = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

// attempt runs a check. An error of a Test within it is returned.
func attempt(check func() error) (err error) {
	id := goroutine()
	count(id, 1)
	defer count(id, -1)
	defer func() {
		switch end := recover().(type) {
		case nil:
		case endOfCheck:
			err = errors.New(end.problem)
		default:
			panic(end)
		}
	}()
	return check()
}

func count(id string, change int) {
	checks.Lock()
	defer checks.Unlock()
	if checks.of[id] += change; checks.of[id] == 0 {
		delete(checks.of, id)
	}
}

// failed ends the check that runs in this goroutine, if there is one.
func failed(problem string) {
	id := goroutine()
	checks.Lock()
	running := checks.of[id] > 0
	checks.Unlock()
	if running {
		panic(endOfCheck{strings.TrimSuffix(problem, "\n")})
	}
}

// goroutine returns the number of this goroutine, which the runtime shows in traces only ("goroutine 7 [running]:").
func goroutine() string {
	var trace [64]byte
	return string(bytes.Fields(trace[:runtime.Stack(trace[:], false)])[1])
}

// Error implements testing.TB.
func (t Test) Error(args ...any) {
	t.Helper()
	failed(fmt.Sprintln(args...))
	t.T.Error(args...)
}

// Errorf implements testing.TB.
func (t Test) Errorf(format string, args ...any) {
	t.Helper()
	failed(fmt.Sprintf(format, args...))
	t.T.Errorf(format, args...)
}

// Fatal implements testing.TB.
func (t Test) Fatal(args ...any) {
	t.Helper()
	failed(fmt.Sprintln(args...))
	t.T.Fatal(args...)
}

// Fatalf implements testing.TB.
func (t Test) Fatalf(format string, args ...any) {
	t.Helper()
	failed(fmt.Sprintf(format, args...))
	t.T.Fatalf(format, args...)
}

// Fail implements testing.TB.
func (t Test) Fail() {
	t.Helper()
	failed("the check has failed")
	t.T.Fail()
}

// FailNow implements testing.TB.
func (t Test) FailNow() {
	t.Helper()
	failed("the check has failed")
	t.T.FailNow()
}
