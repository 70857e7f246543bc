// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sources are the tests of the packages of a module, without what begins each file.
var sources = map[string]string{
	"passes": `
func TestPasses(t *testing.T) { t.Log("not printed") }
func TestSkipped(t *testing.T) { t.Skip("not printed") }`,
	"skipped": `
func TestSkipped(t *testing.T) { t.Skip("on request") }`,
	"flaky": `
func TestFlaky(t *testing.T) {
	if os.Getenv("JOBSET_VARIABLE") != "of the run" {
		t.Fatal("the variable is not set")
	}
	t.Run("a/sub test", func(t *testing.T) {
		if first("flaky") {
			t.Errorf("flaky the first time,\nwith a second line")
		}
	})
	t.Run("passes", func(t *testing.T) { t.Log("not printed") })
}
func TestPasses(t *testing.T) {
	if !first("other") {
		t.Fatal("ran the second time")
	}
}`,
	"twice": `
func TestTwice(t *testing.T) { t.Fatal("fails always") }`,
	"safety": `
func TestSafety(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		t.Attr("safety", "true")
		if first("safety") {
			t.Error("lost a write")
		}
	})
}`,
	"panics": `
func TestPanics(t *testing.T) {
	if first("panics") {
		panic("out of range")
	}
}`,
	"exits": `
func TestExits(t *testing.T) {
	if first("exits") {
		os.Exit(1)
	}
}`,
	"killed": `
func TestKilled(t *testing.T) {
	if first("killed") {
		kill(os.Getpid())
	}
}`,
	"quits": `
func TestQuits(t *testing.T) { syscall.Exit(0) }
func TestLost(t *testing.T) { t.Fatal("never runs") }`,
	"ignores": `
func TestMain(m *testing.M) {
	m.Run()
	os.Exit(0)
}
func TestIgnored(t *testing.T) { t.Error("fails") }`,
	"announces": `
func TestMain(m *testing.M) {
	fmt.Println("PASS")
	os.Exit(m.Run())
}
func TestAnnounced(t *testing.T) { kill(os.Getpid()) }`,
	"claims": `
func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Println("PASS")
	os.Exit(code)
}
func TestClaims(t *testing.T) { t.Error("fails") }`,
	"killer": `
func TestMain(m *testing.M) {
	if first("killer") {
		kill(os.Getppid())
	}
	os.Exit(m.Run())
}
func TestKiller(t *testing.T) {}`,
	"slow": `
func TestSlow(t *testing.T) { select {} }`,
	"broken": `
func TestBroken(t *testing.T) { t.Unknown() }`,
	"untested": `
func helper(t *testing.T) {}`,
	"unfiltered": `
func TestMain(m *testing.M) { os.Exit(m.Run()) }
func TestUnfiltered(t *testing.T) {}`,
	"start": `
func TestMain(m *testing.M) {
	fmt.Fprintln(os.Stderr, "starting")
	if first("start") {
		fmt.Fprintln(os.Stderr, "suite: the cluster did not start")
		os.Exit(1)
	}
	os.Exit(m.Run())
}
func TestStart(t *testing.T) {}`,
	"startpanics": `
func TestMain(m *testing.M) { panic("no cluster") }
func TestStart(t *testing.T) {}`,
	"stop": `
func TestMain(m *testing.M) {
	m.Run()
	fmt.Fprintln(os.Stderr, "suite: the cluster did not stop")
	os.Exit(1)
}
func TestStop(t *testing.T) {}`,
	"four": `
func fails(t *testing.T) {
	t.Helper()
	if first(t.Name()) {
		t.Error("flaky")
	}
}
func TestA(t *testing.T) { fails(t) }
func TestB(t *testing.T) { fails(t) }
func TestC(t *testing.T) { fails(t) }
func TestD(t *testing.T) { fails(t) }`,
	"vanishes": `
func TestVanishes(t *testing.T) {
	if !first("vanishes") {
		t.Skip("not today")
	}
	t.Error("fails")
}`,
	"interrupted": `
func TestInterrupted(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	first("ready")
	<-signals
	time.Sleep(100 * time.Millisecond)
	fmt.Println("cleaned up")
	first("cleaned")
}`,
}

// beginning is the beginning of each file. First says that it is called for the first time with that name, in all runs.
const beginning = `
import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var _, _, _ = fmt.Print, signal.Notify, time.Sleep

func kill(pid int) {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		panic(err)
	}
	if pid == os.Getpid() {
		select {}
	}
}

func first(name string) bool {
	file := filepath.Join(os.Getenv("JOBSET_MARKERS"), name)
	_, err := os.Stat(file)
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		panic(err)
	}
	return err != nil
}
`

// inModule makes a module of the sources and changes to it. All modules have one path, so that the cache of go build has their packages.
func inModule(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module example.com/tests\n\ngo 1.26.0\n", "passes/code/code.go": "package code\n"}
	for name, source := range sources {
		files[filepath.Join(name, name+"_test.go")] = "package " + name + "\n" + beginning + source + "\n"
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod -trimpath -buildvcs=false")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOWORK", "off")
}

// gate is a run of some packages, and the repetition after it.
type gate struct {
	state, markers, log string
}

func newGate(t *testing.T) gate {
	t.Helper()
	dir := t.TempDir()
	g := gate{state: filepath.Join(dir, "state"), markers: filepath.Join(dir, "markers"), log: filepath.Join(dir, "logs", "flaky")}
	if err := os.Mkdir(g.markers, 0o777); err != nil {
		t.Fatal(err)
	}
	return g
}

// run runs tests with the flags of the project, and returns the exit code and the output.
func (g gate) run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	t.Setenv("JOBSET_MARKERS", g.markers)
	t.Setenv("JOBSET_VARIABLE", "of the run")
	return call(t, append([]string{"run", "-state", g.state, "--", "-vet=off", "-ldflags", "-s -w", "-count=1", "-p", "1"}, args...)...)
}

// again repeats tests. The variables are not those of the run.
func (g gate) again(t *testing.T) (int, string) {
	t.Helper()
	t.Setenv("JOBSET_MARKERS", "/none")
	t.Setenv("JOBSET_VARIABLE", "of the repetition")
	return call(t, "again", "-state", g.state, "-log", g.log)
}

func call(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out strings.Builder
	code, err := command(args, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String()
}
