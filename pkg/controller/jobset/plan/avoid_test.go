// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	hostplan "github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

func sortedWords(words []string) string {
	slices.Sort(words)
	return strings.Join(words, " ")
}

// avoids makes a set avoid nodes for a time, and keepsOff puts nodes on the list of an attempt, until minutes from now.
func avoids(value string) func(*jobsetv1alpha2.JobSet) {
	return func(js *jobsetv1alpha2.JobSet) {
		js.Annotations = map[string]string{jobsetv1alpha2.AvoidFailedNodesKey: value}
	}
}

func keepsOff(attempt int32, minutes int, nodes ...string) func(*jobsetv1alpha2.Attempt) {
	return func(a *jobsetv1alpha2.Attempt) {
		for _, node := range nodes {
			a.AvoidedNodes = append(a.AvoidedNodes, jobsetv1alpha2.AvoidedNode{
				Name: node, Attempt: attempt, Reason: "Evicted", Until: metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute))})
		}
	}
}

func forgot(a *jobsetv1alpha2.Attempt) { a.ForgetTime = at(3) }

// killedOn makes an attempt one that failed by a signal on a node, so many minutes ago.
func killedOn(node string, minutesAgo int) func(*jobsetv1alpha2.Attempt) {
	return func(a *jobsetv1alpha2.Attempt) {
		when := metav1.NewTime(now.Add(-time.Duration(minutesAgo) * time.Minute))
		a.FirstCause = killOn(node, when)
		ended(ptr.To(metav1.NewMicroTime(when.Time)), jobsetv1alpha2.OutcomeRestarted, "failed")(a)
	}
}

func killOn(node string, when metav1.Time) *jobsetv1alpha2.FailureCause {
	return &jobsetv1alpha2.FailureCause{
		Job: "js-w-0", Pod: "js-w-0-0-x", Node: node, Container: "main", ExitCode: ptr.To[int32](137), Signal: ptr.To[int32](9), Reason: "Error", Time: &when,
	}
}

// past is an attempt that has ended, and running one that runs.
func past(number int32, change ...func(*jobsetv1alpha2.Attempt)) jobsetv1alpha2.Attempt {
	return begun(number, jobsetv1alpha2.TriggerFailurePolicy, append([]func(*jobsetv1alpha2.Attempt){
		ended(at(1), jobsetv1alpha2.OutcomeRestarted, "failed")}, change...)...)
}

func runs(number int32, change ...func(*jobsetv1alpha2.Attempt)) jobsetv1alpha2.Attempt {
	return begun(number, jobsetv1alpha2.TriggerFailurePolicy, change...)
}

// listed is the list of the newest attempt in short: each node with the attempt that failed there, and the minutes that are left.
func listed(status *jobsetv1alpha2.JobSetStatus) string {
	var out []string
	for _, node := range status.Attempts[len(status.Attempts)-1].AvoidedNodes {
		out = append(out, fmt.Sprintf("%s/%d/%.0f", node.Name, node.Attempt, node.Until.Sub(now.Time).Minutes()))
	}
	return strings.Join(out, " ")
}

func TestAvoidedNodesOfAnAttempt(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("m%d", i)
	}
	type list = []jobsetv1alpha2.Attempt
	for name, tc := range map[string]struct {
		annotation string
		byDefault  time.Duration
		attempts   list
		nodes      int
		want       string
	}{
		"a node that failed":          {annotation: "1h", attempts: list{past(1, killedOn("n1", 10)), runs(2)}, nodes: 20, want: "n1/1/50"},
		"not asked for":               {attempts: list{past(1, killedOn("n1", 10)), runs(2)}, nodes: 20},
		"by default":                  {byDefault: time.Hour, attempts: list{past(1, killedOn("n1", 10)), runs(2)}, nodes: 20, want: "n1/1/50"},
		"the set wants none":          {annotation: "0s", byDefault: time.Hour, attempts: list{past(1, killedOn("n1", 10)), runs(2)}, nodes: 20},
		"a value without meaning":     {annotation: "soon", byDefault: time.Hour, attempts: list{past(1, killedOn("n1", 10)), runs(2)}, nodes: 20, want: "n1/1/50"},
		"the time is over":            {annotation: "10m", attempts: list{past(1, killedOn("n1", 10)), runs(2)}, nodes: 20},
		"a clock that is ahead":       {annotation: "10m", attempts: list{past(1, killedOn("n1", -90)), runs(2)}, nodes: 20, want: "n1/1/10"},
		"not a failure of its node":   {annotation: "1h", attempts: list{past(1, failedBy("ImagePullBackOff")), runs(2)}, nodes: 20},
		"listed by an earlier one":    {annotation: "1h", attempts: list{past(12, keepsOff(1, 7, "n1"), killedOn("n2", 1)), runs(13)}, nodes: 20, want: "n2/12/59 n1/1/7"},
		"the time of one is over":     {annotation: "1h", attempts: list{past(2, keepsOff(1, 0, "n1"), killedOn("n2", 1)), runs(3)}, nodes: 20, want: "n2/2/59"},
		"the same node again":         {annotation: "1h", attempts: list{past(2, keepsOff(1, 7, "n1"), killedOn("n1", 1)), runs(3)}, nodes: 20, want: "n1/2/59"},
		"begun before it was decided": {annotation: "1h", attempts: list{past(1, killedOn("n1", 3)), past(2), runs(3)}, nodes: 20, want: "n1/1/57"},
		"a tenth of the nodes, those that failed last": {annotation: "1h", nodes: 29,
			attempts: list{past(1, killedOn("n1", 3)), past(2, killedOn("n2", 2)), past(3, killedOn("n3", 1)), runs(4)}, want: "n3/3/59 n2/2/58"},
		"fewer than ten nodes":              {annotation: "1h", attempts: list{past(1, killedOn("n1", 10)), runs(2)}, nodes: 9},
		"as many nodes as nobody knows":     {annotation: "1h", attempts: list{past(1, killedOn("n1", 2)), past(2, killedOn("n2", 1)), runs(3)}, want: "n2/2/59"},
		"forgotten nodes stay so":           {annotation: "1h", attempts: list{past(2, keepsOff(1, 7, "n1"), forgot), runs(3)}, nodes: 20},
		"what failed after that":            {annotation: "1h", attempts: list{past(2, keepsOff(1, 7, "n1"), forgot, killedOn("n2", 1)), runs(3)}, nodes: 20, want: "n2/2/59"},
		"a name that no label can have":     {annotation: "1h", attempts: list{past(1, killedOn(strings.Repeat("n", 64), 10)), runs(2)}, nodes: 20},
		"decided already":                   {annotation: "1h", attempts: list{past(1, killedOn("n1", 10)), runs(2, keepsOff(1, 5, "n9"))}, nodes: 20, want: "n9/1/5"},
		"the Jobs of the attempt are there": {annotation: "1h", attempts: list{past(1, killedOn("n1", 10)), runs(2, created(1))}, nodes: 20},
		"no more than a status may hold":    {annotation: "1h", attempts: list{past(1, keepsOff(1, 5, many...)), runs(2)}, nodes: 5000, want: strings.Join(times(many[:32], "/1/5"), " ")},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet(with("w", 1), withAttempts(tc.attempts...))
			if tc.annotation != "" {
				avoids(tc.annotation)(js)
			}
			o := observe(js)
			o.KeepAttempts, o.AvoidFailedNodes = true, tc.byDefault
			if tc.nodes > 0 {
				o.Nodes = hostplan.Of(tc.nodes)
			}
			p := Decide(o)
			diff(t, "nodes", tc.want, listed(statusAfter(o, p)))
			changed := listed(statusAfter(o, p)) != listed(&js.Status)
			due, _ := avoidance(o, &js.Status)
			diff(t, "due", changed, len(due) > 0)
			if changed != (len(p.CreateJobs) == 0) {
				t.Errorf("the list changes: %t, and Jobs are created: %v", changed, names(p.CreateJobs))
			}
			diff(t, "event", changed, slices.ContainsFunc(p.Events, func(e Event) bool { return e.Reason == reasonNodesAvoided }))
			if changed && !nodesAsked(o) {
				t.Error("the number of nodes is not asked for")
			}
		})
	}
}

func failedBy(reason string) func(*jobsetv1alpha2.Attempt) {
	return func(a *jobsetv1alpha2.Attempt) {
		a.FirstCause = &jobsetv1alpha2.FailureCause{Job: "js-w-0", Node: "n1", Reason: reason}
	}
}

// TestRestartKeepsOffTheNode follows a failure to the next Jobs.
func TestRestartKeepsOffTheNode(t *testing.T) {
	js := newSet(with("w", 2), failurePolicy(3), avoids("1h"), withAttempts(begun(1, jobsetv1alpha2.TriggerStart, created(1), readySince(2))))
	o := observe(js, jobNamed("w", 0, failedWith("BackoffLimitExceeded", "", 59)), jobNamed("w", 1, ready))
	o.KeepAttempts = true
	if nodesAsked(o) {
		t.Error("the number of nodes is asked for although the cause is not known")
	}
	o.Cause = hostplan.Of(killOn("n7", metav1.NewTime(now.Add(-time.Minute))))
	if !nodesAsked(o) {
		t.Error("the number of nodes is not asked for")
	}
	o.Nodes = hostplan.Of(10)
	p := Decide(o)
	diff(t, "nodes", "n7/1/59", listed(p.Status))
	last := p.Events[slices.IndexFunc(p.Events, func(e Event) bool { return e.Reason == reasonNodesAvoided })]
	diff(t, "event", Event{Type: corev1.EventTypeNormal, Reason: reasonNodesAvoided, Note: "pods of attempt 2 keep off node n7; on node n7 attempt 1 failed: container main was ended by signal 9"}, last)

	js.Status = *p.Status
	o = observe(js)
	o.KeepAttempts = true
	p = Decide(o)
	diff(t, "Jobs", []string{"js-w-0", "js-w-1"}, names(p.CreateJobs))
	for _, job := range p.CreateJobs {
		diff(t, "annotation", "n7", job.Annotations[jobsetv1alpha2.AvoidedNodesKey])
		diff(t, "affinity", KeptOff(nil, []string{"n7"}), job.Spec.Template.Spec.Affinity)
	}
	o.Now = metav1.NewTime(now.Add(2 * time.Hour))
	for _, job := range Decide(o).CreateJobs {
		diff(t, "annotation when the time is over", "", job.Annotations[jobsetv1alpha2.AvoidedNodesKey])
		diff(t, "affinity when the time is over", (*corev1.Affinity)(nil), job.Spec.Template.Spec.Affinity)
	}
}

func TestPodsThatStayKeepOffTheirNodes(t *testing.T) {
	diff(t, "none", []jobsetv1alpha2.AvoidedNode(nil), stillAvoided(nil, now.Time))
	one := past(2, keepsOff(1, 7, "n1"), keepsOff(1, 0, "n2"))
	diff(t, "those whose time is not over", one.AvoidedNodes[:1], stillAvoided([]jobsetv1alpha2.Attempt{one}, now.Time))
	diff(t, "forgotten", []jobsetv1alpha2.AvoidedNode(nil), stillAvoided([]jobsetv1alpha2.Attempt{past(2, keepsOff(1, 7, "n1"), forgot)}, now.Time))
}

func avoiding(nodes string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Annotations[jobsetv1alpha2.AvoidedNodesKey] = nodes }
}

// TestResumedJobsKeepOffTheNodesOfTheirAttempt shows that a suspended Job which was created for other nodes is not resumed, but replaced.
func TestResumedJobsKeepOffTheNodesOfTheirAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		avoided, job     string
		deleted, resumed []string
	}{
		"the same nodes":      {avoided: "n1", job: "n1", resumed: []string{"js-w-0"}},
		"no nodes":            {resumed: []string{"js-w-0"}},
		"nodes since":         {avoided: "n1", deleted: []string{"js-w-0"}},
		"the time is over":    {job: "n1", deleted: []string{"js-w-0"}},
		"other nodes than it": {avoided: "n2", job: "n1", deleted: []string{"js-w-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := runs(2, created(2))
			if tc.avoided != "" {
				keepsOff(1, 5, tc.avoided)(&a)
			}
			job := jobNamed("w", 0, jobIsSuspended)
			if tc.job != "" {
				avoiding(tc.job)(job)
			}
			o := observe(newSet(with("w", 1), avoids("1h"), withAttempts(past(1), a)), job)
			o.KeepAttempts, o.Nodes = true, hostplan.Of(30)
			p := Decide(o)
			var resumed []string
			for _, patch := range p.PatchJobs {
				resumed = append(resumed, patch.Name)
			}
			diff(t, "deleted", tc.deleted, refNames(p.DeleteJobs))
			diff(t, "resumed", tc.resumed, resumed)
		})
	}
}
