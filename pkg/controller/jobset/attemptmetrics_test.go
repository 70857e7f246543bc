// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

// begin is when sets of these tests were created.
var begin = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func after(seconds int) *metav1.MicroTime {
	return ptr.To(metav1.NewMicroTime(begin.Add(time.Duration(seconds) * time.Second)))
}

func setWith(attempts ...jobsetv1alpha2.Attempt) *jobsetv1alpha2.JobSet {
	js := newSet()
	js.CreationTimestamp = metav1.NewTime(begin)
	js.ResourceVersion = fmt.Sprint(len(attempts))
	js.Status.Attempts = attempts
	return js
}

func TestAttemptsAreMeasured(t *testing.T) {
	type attempt = jobsetv1alpha2.Attempt
	first := attempt{Number: 1, Trigger: jobsetv1alpha2.TriggerStart, RequestTime: after(0)}
	firstReady, firstEnded := first, first
	firstReady.ReadyTime = after(3)
	firstEnded.EndTime = after(5)
	second := attempt{Number: 2, Trigger: jobsetv1alpha2.TriggerRequested, RequestTime: after(5)}
	secondReady := second
	secondReady.ReadyTime = after(45)
	resumed, resumedReady := second, secondReady
	resumed.Trigger, resumedReady.Trigger = jobsetv1alpha2.TriggerResume, jobsetv1alpha2.TriggerResume
	wasReady := setWith(firstEnded, second)
	wasReady.Status.ReadyMilliseconds = 1
	for name, tc := range map[string]struct {
		was, is *jobsetv1alpha2.JobSet
		want    []string
	}{
		"a set starts":                        {setWith(), setWith(first), []string{`jobset_attempts_total{trigger="Start"} 1`}},
		"it gets ready":                       {setWith(first), setWith(firstReady), []string{`jobset_startup_seconds_sum 3`, `jobset_startup_seconds_count 1`}},
		"it is restarted":                     {setWith(first), setWith(firstEnded, second), []string{`jobset_attempts_total{trigger="Requested"} 1`}},
		"two changes are seen as one":         {setWith(), setWith(firstEnded, second), []string{`jobset_attempts_total{trigger="Requested"} 1`, `jobset_attempts_total{trigger="Start"} 1`}},
		"it recovers":                         {wasReady, setWith(firstEnded, secondReady), []string{`jobset_recovery_seconds_sum{trigger="Requested"} 40`, `jobset_recovery_seconds_count{trigger="Requested"} 1`}},
		"it gets ready after a restart only":  {setWith(firstEnded, second), setWith(firstEnded, secondReady), []string{`jobset_recovery_seconds_sum{trigger="Requested"} 40`, `jobset_recovery_seconds_count{trigger="Requested"} 1`, `jobset_startup_seconds_sum 45`, `jobset_startup_seconds_count 1`}},
		"a resume is no recovery":             {setWith(firstReady, resumed), setWith(firstReady, resumedReady), nil},
		"nothing changes":                     {setWith(firstEnded, secondReady), setWith(firstEnded, secondReady), nil},
		"a history of which the begin is old": {setWith(second), setWith(secondReady), []string{`jobset_recovery_seconds_sum{trigger="Requested"} 40`, `jobset_recovery_seconds_count{trigger="Requested"} 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			registerMetrics()
			for _, metric := range []interface{ Reset() }{attemptsTotal, recoverySeconds} {
				metric.Reset()
			}
			sumBefore := startups(t)
			countAttempts(tc.was, tc.is)
			got := textOf(t, attemptsTotal, recoverySeconds)
			if sum := startups(t); sum != sumBefore {
				got = append(got, fmt.Sprint("jobset_startup_seconds_sum ", sum[0]-sumBefore[0]), fmt.Sprint("jobset_startup_seconds_count ", sum[1]-sumBefore[1]))
			}
			diff(t, "metrics", tc.want, got)
		})
	}
}

func startups(t *testing.T) [2]float64 {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	if err := registry.Register(startupSeconds); err != nil {
		t.Fatal(err)
	}
	var got [2]float64
	for _, line := range gathered(t, registry) {
		for i, name := range []string{"jobset_startup_seconds_sum ", "jobset_startup_seconds_count "} {
			if value, found := strings.CutPrefix(line, name); found {
				if _, err := fmt.Sscan(value, &got[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return got
}

// textOf returns what metrics say, buckets left out.
func textOf(t *testing.T, all ...metrics.Registerable) []string {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	for _, metric := range all {
		if err := registry.Register(metric); err != nil {
			t.Fatal(err)
		}
	}
	return gathered(t, registry)
}

func gathered(t *testing.T, registry metrics.Gatherer) (lines []string) {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, metrics := range all {
		for _, metric := range metrics.GetMetric() {
			var labels []string
			for _, pair := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", pair.GetName(), pair.GetValue()))
			}
			suffix := ""
			if len(labels) > 0 {
				suffix = "{" + strings.Join(labels, ",") + "}"
			}
			switch {
			case metric.GetCounter() != nil:
				lines = append(lines, fmt.Sprint(metrics.GetName(), suffix, " ", metric.GetCounter().GetValue()))
			case metric.GetGauge() != nil:
				lines = append(lines, fmt.Sprint(metrics.GetName(), suffix, " ", metric.GetGauge().GetValue()))
			default:
				h := metric.GetHistogram()
				lines = append(lines, fmt.Sprint(metrics.GetName(), "_sum", suffix, " ", h.GetSampleSum()),
					fmt.Sprint(metrics.GetName(), "_count", suffix, " ", h.GetSampleCount()))
			}
		}
	}
	return lines
}

func TestReadyShare(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(begin.Add(100 * time.Second))
	for name, tc := range map[string]struct {
		change func(*jobsetv1alpha2.JobSet)
		want   string
	}{
		"a set that never ran has none": {func(js *jobsetv1alpha2.JobSet) { js.Status.Attempts = nil }, ""},
		"a set that is not ready yet":   {func(*jobsetv1alpha2.JobSet) {}, " 0"},
		"a set that is ready":           {func(js *jobsetv1alpha2.JobSet) { js.Status.Attempts[0].ReadyTime = after(75) }, " 0.25"},
		"a set that was ready before, too": {func(js *jobsetv1alpha2.JobSet) {
			js.Status.ReadyMilliseconds, js.Status.Attempts[0].ReadyTime = 50_000, after(75)
		}, " 0.75"},
		"a set that has ended keeps what it had then":   {func(js *jobsetv1alpha2.JobSet) { endedAt(js, "Completed", "", 10) }, " 0.5"},
		"a set is never of more use than it has lived":  {func(js *jobsetv1alpha2.JobSet) { js.Status.ReadyMilliseconds = 500_000 }, " 1"},
		"a set that was created later than it is known": {func(js *jobsetv1alpha2.JobSet) { js.CreationTimestamp = metav1.NewTime(begin.Add(time.Hour)) }, " 0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newReadyShares(clock)
			js := setWith(jobsetv1alpha2.Attempt{Number: 1, RequestTime: after(0)})
			tc.change(js)
			g.set(js)
			diff(t, "while another controller leads", []string(nil), readySharesOf(t, g))
			g.shown.Store(true)
			var want []string
			if tc.want != "" {
				want = []string{`jobset_ready_ratio{jobset_name="js",namespace="ns"}` + tc.want}
			}
			diff(t, "ready share", want, readySharesOf(t, g))
			g.forget(js)
			diff(t, "ready share of a set that is gone", []string(nil), readySharesOf(t, g))
		})
	}
}

// endedAt ends a set that was ready for 5 seconds.
func endedAt(js *jobsetv1alpha2.JobSet, conditionType, reason string, second int) {
	js.Status.Attempts[0].EndTime, js.Status.ReadyMilliseconds = after(second), 5000
	js.Status.Conditions = []metav1.Condition{{Type: conditionType, Status: "True", Reason: reason, LastTransitionTime: metav1.NewTime(after(second).Time)}}
}

func readySharesOf(t *testing.T, g *readyShares) []string {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	copied := newReadyShares(g.clock) // a collector can be registered once
	copied.known, copied.latest = g.known, g.latest
	copied.shown.Store(g.shown.Load())
	if err := registry.CustomRegister(copied); err != nil {
		t.Fatal(err)
	}
	return gathered(t, registry)
}

// TestGoodputIsShownForReports adds the goodput of sets whose job reports its checkpoints, at the same time and of the same life.
func TestGoodputIsShownForReports(t *testing.T) {
	r := newReadyShares(clocktesting.NewFakePassiveClock(begin.Add(100 * time.Second)))
	r.shown.Store(true)
	js := setWith(jobsetv1alpha2.Attempt{Number: 1, RequestTime: after(0), ReadyTime: after(25)})
	js.Annotations = map[string]string{jobsetv1alpha2.CheckpointStepKey: "7"}
	js.Status.GoodMilliseconds = 50_000
	r.set(js)
	diff(t, "metrics", []string{
		`jobset_goodput_ratio{jobset_name="js",namespace="ns"} 0.5`, `jobset_ready_ratio{jobset_name="js",namespace="ns"} 0.75`,
	}, readySharesOf(t, r))
}

func TestReadySharesAreBounded(t *testing.T) {
	g := newReadyShares(clocktesting.NewFakePassiveClock(begin))
	for n := range children.MaxSeries + 5 {
		js := setWith(jobsetv1alpha2.Attempt{Number: 1})
		js.Name = fmt.Sprint("js-", n)
		g.set(js)
		g.set(js)
	}
	diff(t, "sets", [2]int{children.MaxSeries, children.MaxSeries}, [2]int{len(g.known), len(g.latest)})
	if _, found := g.known[cache.NewObjectName("ns", "js-4")]; found {
		t.Error("the oldest set is kept")
	}
}

// TestOnlyTheLeaderUpdatesMetrics sends changes as the watch does.
func TestOnlyTheLeaderUpdatesMetrics(t *testing.T) {
	attemptsTotal.Reset()
	failedTotal.Reset()
	registerMetrics()
	r := newRig(t, newSet())
	was, is := setWith(), setWith(jobsetv1alpha2.Attempt{Number: 1, Trigger: jobsetv1alpha2.TriggerStart})
	was.Name, is.Name = "cancelled-set", "cancelled-set"
	endedAt(is, "Failed", "Cancelled", 10)
	for _, leads := range []bool{false, true} {
		r.leads.Store(leads)
		r.measure().UpdateFunc(was, is)
		r.measure().UpdateFunc(is, is)
		want := []string{`jobset_attempts_total{trigger="Start"} 1`}
		if !leads {
			want = nil
		}
		diff(t, fmt.Sprint("attempts if it leads: ", leads), want, textOf(t, attemptsTotal))
	}
	failed, err := testutil.GetCounterMetricValue(failedTotal.WithLabelValues("cancelled-set", "ns"))
	diff(t, "cancelled sets", []any{1.0, nil}, []any{failed, err})
	r.measure().DeleteFunc(is)
	if _, found := readyRatio.known[cache.MetaObjectToName(is)]; found {
		t.Error("a set that is gone is remembered")
	}
}
