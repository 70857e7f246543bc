// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"
)

// rig is a Repeats whose lines are kept.
type rig struct {
	*Repeats
	clock  *clocktesting.FakeClock
	logger klog.Logger
}

func newRig(t *testing.T) *rig {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
	return &rig{Repeats: NewRepeats(clock), clock: clock, logger: logger}
}

func (r *rig) fails(object, text string) { r.Failed(r.logger, object, errors.New(text), "Sync failed") }

// lines returns what was logged.
func (r *rig) lines(t *testing.T) (lines []string) {
	t.Helper()
	sink, ok := r.logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the logger keeps no lines")
	}
	for _, entry := range sink.GetBuffer().Data() {
		line := entry.Message
		if entry.Err != nil {
			line += ": " + entry.Err.Error()
		}
		for i := 0; i+1 < len(entry.ParameterKVList); i += 2 {
			line += fmt.Sprintf(" %v=%v", entry.ParameterKVList[i], entry.ParameterKVList[i+1])
		}
		lines = append(lines, line)
	}
	return lines
}

func check(t *testing.T, want, got []string) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
}

func TestCausesAreLoggedOnce(t *testing.T) {
	r := newRig(t)
	for n := range 50 {
		r.fails("ns/a", fmt.Sprintf("%d jobs could not be created: job \"js-%d\": exceeded quota: q, used: %d", n, n, n))
		r.clock.Step(time.Second)
	}
	check(t, []string{`Sync failed: 0 jobs could not be created: job "js-0": exceeded quota: q, used: 0`}, r.lines(t))
	r.Succeeded(r.logger, "ns/a")
	r.Succeeded(r.logger, "ns/a")
	check(t, []string{
		`Sync failed: 0 jobs could not be created: job "js-0": exceeded quota: q, used: 0`,
		`Succeeded after failures reason=0 jobs could not be created: job "js-0": exceeded quota: q, used: 0 times=50 within=49s`,
	}, r.lines(t))
}

func TestOneFailureIsOneLine(t *testing.T) {
	r := newRig(t)
	r.fails("ns/a", "refused")
	r.Succeeded(r.logger, "ns/a")
	r.Succeeded(r.logger, "ns/b")
	check(t, []string{"Sync failed: refused"}, r.lines(t))
}

func TestAnotherCauseIsLoggedWithTheCountOfTheFirst(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.fails("ns/a", "refused")
	}
	for range 3 { // two causes in turn
		r.fails("ns/a", "invalid")
		r.fails("ns/a", "refused")
	}
	check(t, []string{"Sync failed: refused", "Failed for another reason before reason=refused times=3 within=0s", "Sync failed: invalid"}, r.lines(t))
}

func TestLastingCausesAreCountedEveryTenMinutes(t *testing.T) {
	r := newRig(t)
	for range 25 {
		r.fails("ns/a", "refused")
		r.clock.Step(time.Minute)
	}
	r.Flush(r.logger)
	check(t, []string{"Sync failed: refused", "Sync failed reason=refused times=11 within=10m0s", "Sync failed reason=refused times=21 within=20m0s"}, r.lines(t))
	r.clock.Step(5 * time.Minute)
	r.Flush(r.logger)
	check(t, []string{"Failures go on reason=refused times=25 within=24m0s"}, r.lines(t)[3:])
	r.clock.Step(time.Hour)
	r.Flush(r.logger)
	check(t, nil, r.lines(t)[4:])
}

// An outage of a server concerns all objects.
func TestOutagesAreOneLine(t *testing.T) {
	r := newRig(t)
	for n := range 5000 {
		r.fails(General, fmt.Sprintf(`updating status of jobset ns-%d/js: Put "https://10.0.0.1/%d": dial tcp 10.0.0.1:443: connect: connection refused`, n, n))
	}
	check(t, []string{`Sync failed: updating status of jobset ns-0/js: Put "https://10.0.0.1/0": dial tcp 10.0.0.1:443: connect: connection refused`}, r.lines(t))
	r.clock.Step(overAfter)
	r.Flush(r.logger)
	r.Flush(r.logger)
	if lines := r.lines(t); len(lines) != 2 || !strings.HasPrefix(lines[1], "No failure for this reason any more reason=") || !strings.Contains(lines[1], " times=5000 ") {
		t.Errorf("lines %q, want one more, with the number", lines)
	}
}

func TestEssenceOfErrors(t *testing.T) {
	for text, want := range map[string]string{
		`15 jobs could not be created: job "js-5" creation failed with error: exceeded quota: q, used: pods=5`: " jobs could not be created: job creation failed with error: exceeded quota: q, used: pods=",
		"patching job ns-7/js-w-12: denied\nand 2 more":                                                        "patching job denied",
		"": "",
	} {
		if got := essence(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	r := newRig(t)
	r.logger = klog.Logger{} // writes nothing
	for n := range 3 * maxObjects {
		for _, letter := range "abcdefgh" {
			r.fails(fmt.Sprint("ns/", n), strings.Repeat(string(letter), 10_000))
		}
	}
	if len(r.objects) != maxObjects || len(r.order) != maxObjects {
		t.Errorf("%d and %d objects, want %d", len(r.objects), len(r.order), maxObjects)
	}
	for object, causes := range r.objects {
		if len(causes) != maxCauses {
			t.Fatalf("%d causes of %s, want %d", len(causes), object, maxCauses)
		}
		for id, c := range causes {
			if len(c.text) > maxText || len(id) > 1000 {
				t.Fatalf("a cause of %d and %d bytes", len(c.text), len(id))
			}
		}
	}
}
