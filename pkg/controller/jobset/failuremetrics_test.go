// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

func TestFirstCausesAreCounted(t *testing.T) {
	registerMetrics()
	type attempt = jobsetv1alpha2.Attempt
	failed := func(number int32, reason string) attempt {
		return attempt{Number: number, FirstCause: &jobsetv1alpha2.FailureCause{Reason: reason}}
	}
	for name, tc := range map[string]struct {
		was, is []attempt
		want    []string
	}{
		"a cause is stored":                 {[]attempt{{Number: 1}}, []attempt{failed(1, "OOMKilled")}, []string{`jobset_first_failures_total{cause="OOMKilled"} 1`}},
		"it was stored before":              {[]attempt{failed(1, "OOMKilled")}, []attempt{failed(1, "OOMKilled"), {Number: 2}}, nil},
		"attempt and cause are seen as one": {nil, []attempt{failed(1, "Error")}, []string{`jobset_first_failures_total{cause="Error"} 1`}},
		"an old attempt has come back":      {[]attempt{{Number: 2}}, []attempt{failed(1, "Error"), {Number: 2}}, nil},
		"a reason that nobody has listed":   {[]attempt{{Number: 1}}, []attempt{failed(1, strings.Repeat("x", 1000))}, []string{`jobset_first_failures_total{cause="Other"} 1`}},
		"no reason":                         {[]attempt{{Number: 1}}, []attempt{failed(1, "")}, []string{`jobset_first_failures_total{cause="Other"} 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			firstFailuresTotal.Reset()
			countCauses(&jobsetv1alpha2.JobSetStatus{Attempts: tc.was}, &jobsetv1alpha2.JobSetStatus{Attempts: tc.is})
			diff(t, "causes", tc.want, textOf(t, firstFailuresTotal))
		})
	}
}

func TestWaitsForPlacementAreMeasured(t *testing.T) {
	registerMetrics()
	status := func(status metav1.ConditionStatus, second int) *jobsetv1alpha2.JobSetStatus {
		return &jobsetv1alpha2.JobSetStatus{Conditions: []metav1.Condition{{
			Type: jobsetv1alpha2.PlacementPending, Status: status, LastTransitionTime: metav1.NewTime(after(second).Time),
		}}}
	}
	for name, tc := range map[string]struct {
		was, is *jobsetv1alpha2.JobSetStatus
		count   float64
		sum     float64
	}{
		"it has domains now":      {status(metav1.ConditionTrue, 10), status(metav1.ConditionFalse, 25), 1, 15},
		"the clock was set back":  {status(metav1.ConditionTrue, 10), status(metav1.ConditionFalse, 5), 1, 0},
		"it goes on waiting":      {status(metav1.ConditionTrue, 10), status(metav1.ConditionTrue, 10), 0, 0},
		"it had domains before":   {status(metav1.ConditionFalse, 10), status(metav1.ConditionFalse, 10), 0, 0},
		"it begins to wait":       {&jobsetv1alpha2.JobSetStatus{}, status(metav1.ConditionTrue, 10), 0, 0},
		"the condition was lost":  {status(metav1.ConditionTrue, 10), &jobsetv1alpha2.JobSetStatus{}, 0, 0},
		"it never asked for them": {&jobsetv1alpha2.JobSetStatus{}, &jobsetv1alpha2.JobSetStatus{}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			countBefore, sumBefore := waitsSoFar(t)
			observeWait(tc.was, tc.is)
			count, sum := waitsSoFar(t)
			if count-countBefore != tc.count || sum-sumBefore != tc.sum {
				t.Errorf("observed %v waits of %v seconds, want %v of %v", count-countBefore, sum-sumBefore, tc.count, tc.sum)
			}
		})
	}
}

func waitsSoFar(t *testing.T) (count, sum float64) {
	t.Helper()
	for suffix, value := range map[string]*float64{"_count ": &count, "_sum ": &sum} {
		for _, line := range series(t, "jobset_placement_wait_seconds"+suffix) {
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " "):], value); err != nil {
				t.Fatal(err)
			}
		}
	}
	return count, sum
}

// series returns the lines of the metrics of this process that begin with the prefix.
func series(t *testing.T, prefix string) []string {
	t.Helper()
	return slices.DeleteFunc(gathered(t, legacyregistry.DefaultGatherer), func(line string) bool { return !strings.HasPrefix(line, prefix) })
}

// TestFinishedSetsHaveNoConditions counts only sets that may go on.
func TestFinishedSetsHaveNoConditions(t *testing.T) {
	registerMetrics()
	conditions.Show()
	t.Cleanup(func() { conditions.Set(cache.MetaObjectToName(newSet()), nil) })
	held := `jobset_jobsets_with_condition{condition="Held"} `
	js := newSet()
	js.Status.Conditions = []metav1.Condition{{Type: jobsetv1alpha2.Held, Status: metav1.ConditionTrue}}
	countPhase(js)
	if lines := series(t, "jobset_jobsets_with_condition{"); len(lines) != len(helper.Troubles()) || !slices.Contains(lines, held+"1") {
		t.Errorf("a set that is held: %q", lines)
	}
	js.Status.TerminalState = jobsetv1alpha2.TerminalStateFailed
	countPhase(js)
	if lines := series(t, "jobset_jobsets_with_condition{"); !slices.Contains(lines, held+"0") {
		t.Errorf("a set that has failed: %q", lines)
	}
}

// TestSeriesBeginWithZero finds the series that must exist before the first event.
func TestSeriesBeginWithZero(t *testing.T) {
	registerMetrics()
	for _, metric := range []interface{ Reset() }{finishedTotal, attemptsTotal, recoverySeconds, firstFailuresTotal, droppedTotal} {
		metric.Reset()
	}
	initMetrics()
	for metric, want := range map[string]int{
		"jobset_jobsets_finished_total": 2, "jobset_attempts_total": 6, "jobset_first_failures_total": len(causes), "jobset_dropped_status_fields_total": 5,
	} {
		lines := series(t, metric+"{")
		if len(lines) != want || slices.ContainsFunc(lines, func(line string) bool { return !strings.HasSuffix(line, " 0") }) {
			t.Errorf("%s: %q, want %d series of 0", metric, lines, want)
		}
	}
}
