// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unique"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	planinplace "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan/inplace"
)

// shown is a pod as a test has it.
type shown struct {
	name     string
	job      types.UID
	attempt  string
	failed   bool
	done     bool
	restarts int32
}

var namespace = unique.Make("ns")

func (p shown) pod() Pod {
	pod := Pod{Namespace: namespace, Name: p.name, Job: func() types.UID { return p.job }, Failed: p.failed, Succeeded: p.done && !p.failed, ContainerRestarts: p.restarts}
	if p.attempt != "" {
		pod.Attempt = NewAttempt(p.attempt)
	}
	return pod
}

// sum looks at all pods of a Job one by one. It does not know which pod came first.
func sum(pods map[string]shown, job types.UID) (out planinplace.State) {
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		p := pods[name]
		if p.job != job {
			continue
		}
		out.ContainerRestarts = max(out.ContainerRestarts, p.restarts)
		if p.attempt == "" || p.failed {
			continue
		}
		if p.done {
			out.Succeeded++
			continue
		}
		n, ok := parse(p.attempt)
		if !ok {
			out.Problems = append(out.Problems, name)
			continue
		}
		if out.Pods == 0 {
			out.Lowest, out.Highest = n, n
		}
		out.Pods, out.Lowest, out.Highest = out.Pods+1, min(out.Lowest, n), max(out.Highest, n)
	}
	out.Problems = out.Problems[:min(len(out.Problems), maxProblems)]
	return out
}

// relevant is what decisions depend on, if the Job has so many pods: how many pods have come does not matter while they
// have come to different attempts.
func relevant(p planinplace.State) planinplace.State {
	if p.Lowest != p.Highest {
		p.Pods, p.Succeeded = 0, 0
	}
	if p.Pods == 0 {
		p.Succeeded = 0
	}
	p.First, p.Order = "", 0
	return p
}

// stripped leaves out what a sum does not know.
func stripped(p planinplace.State) planinplace.State {
	p.First, p.Order = "", 0
	for i, problem := range p.Problems {
		p.Problems[i] = strings.Split(problem, `"`)[1]
	}
	return p
}

// events are random changes of pods: they come, change, go, come again under the same name for another Job, are shown
// once more, and their end is missed, all in any order.
type events struct {
	*rand.Rand
	tally *Tally
	pods  map[string]shown
}

func newEvents(seed uint64) *events {
	return &events{Rand: rand.New(rand.NewPCG(seed, 1)), tally: New(), pods: map[string]shown{}}
}

func (e *events) pick(options ...string) string { return options[e.IntN(len(options))] }

func (e *events) random(name string) shown {
	p, known := e.pods[name]
	if !known {
		p = shown{name: name}
	}
	if !known || e.IntN(8) == 0 {
		p.job = types.UID(e.pick("job-a", "job-b", "job-c"))
	}
	switch e.IntN(7) {
	case 0:
		p.attempt = e.pick("", "-1", "x", "99999999999", "+0", "007")
	case 1:
		p.restarts = e.Int32N(3)
	case 2:
		p.failed = !p.failed
	case 3:
		p.done = !p.done
	default:
		p.attempt = e.pick("0", "1", "1", "2")
	}
	return p
}

// step lets one thing happen. It returns the Jobs that it concerns, and whether the tally says that decisions depend on it.
func (e *events) step() (jobs []types.UID, changed bool) {
	name := fmt.Sprint("p", e.IntN(14))
	before, known := e.pods[name]
	if known {
		jobs = append(jobs, before.job)
	}
	switch n := e.IntN(10); {
	case n < 2: // also pods that were never shown
		delete(e.pods, name)
		return jobs, e.tally.Remove(namespace, name)
	case n < 3 && known:
		return jobs, e.tally.Show(before.pod())
	}
	p := e.random(name)
	e.pods[name] = p
	return append(jobs, p.job), e.tally.Show(p.pod())
}

// TestTallyCountsAsOneByOne compares the counts with sums after each of many random events, and what is reported as a
// change with what has changed.
func TestTallyCountsAsOneByOne(t *testing.T) {
	const histories, steps = 2000, 120
	reported, all := 0, 0
	for seed := range uint64(histories) {
		e := newEvents(seed)
		before := map[types.UID]planinplace.State{}
		for range steps {
			jobs, changed := e.step()
			differs := false
			for _, job := range jobs {
				is, _ := e.tally.Of(job)
				want := sum(e.pods, job)
				if d := cmp.Diff(want, stripped(is)); d != "" {
					t.Fatalf("seed %d, %s (-want +got):\n%s", seed, job, d)
				}
				differs = differs || !cmp.Equal(relevant(before[job]), relevant(want))
				before[job] = want
			}
			if differs && !changed {
				t.Fatalf("seed %d: a change of %v is not reported", seed, jobs)
			}
			all++
			if changed {
				reported++
			}
		}
		for name := range e.pods {
			e.tally.Remove(namespace, name)
		}
		if n := len(e.tally.pods) + len(e.tally.jobs); n > 0 {
			t.Fatalf("seed %d: %d things are kept of pods that are gone", seed, n)
		}
	}
	t.Logf("%d histories of %d events, %d%% of which were reported", histories, steps, 100*reported/all)
}

// TestRestartOfManyPodsIsReportedSeldom has all pods of a Job restart, one by one.
func TestRestartOfManyPodsIsReportedSeldom(t *testing.T) {
	const pods = 5000
	tally := New()
	say := func(attempt string, restarts int32) (reported int) {
		for i := range pods {
			if tally.Show(shown{name: fmt.Sprint("p", i), job: "job", attempt: attempt, restarts: restarts}.pod()) {
				reported++
			}
		}
		return reported
	}
	say("0", 0)
	if got := say("1", 1); got != 2 {
		t.Errorf("%d events were reported, not the first and the last one", got)
	}
	if got := say("1", 1); got != 0 {
		t.Errorf("%d events were reported although nothing changed", got)
	}
	is, _ := tally.Of("job")
	want := planinplace.State{Pods: pods, Lowest: 1, Highest: 1, First: "p0", Order: 2, ContainerRestarts: 1}
	if d := cmp.Diff(want, is); d != "" {
		t.Errorf("pods (-want +got):\n%s", d)
	}
}

// TestLongValuesAreNotKept has pods with annotations as long as annotations may be.
func TestLongValuesAreNotKept(t *testing.T) {
	tally := New()
	for i := range 30 {
		tally.Show(shown{name: fmt.Sprintf("p%02d", i), job: "job", attempt: strings.Repeat("9", 200<<10)}.pod())
	}
	is, _ := tally.Of("job")
	if len(is.Problems) != maxProblems {
		t.Errorf("%d problems, not %d", len(is.Problems), maxProblems)
	}
	want := `pod "p00" prevents the in-place restart: annotation jobset.sigs.k8s.io/in-place-restart-attempt must be a number of 0 or more, not "` +
		strings.Repeat("9", maxShown-3) + `..."`
	if is.Problems[0] != want {
		t.Errorf("problem %q, not %q", is.Problems[0], want)
	}
}

func BenchmarkShow(b *testing.B) {
	for _, pods := range []int{100, 10_000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			tally, all := New(), make([]string, pods)
			for i := range all {
				all[i] = fmt.Sprint("p", i)
				tally.Show(shown{name: all[i], job: "job", attempt: "0"}.pod())
			}
			values := []string{"1", "2"}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				tally.Show(shown{name: all[i%pods], job: "job", attempt: values[i/pods%2]}.pod())
				_, _ = tally.Of("job")
			}
		})
	}
}
