// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

var start = time.Date(2026, 11, 28, 6, 0, 0, 0, time.UTC)

// fixture is a cluster, and migrations whose steps are only noted.
type fixture struct {
	*testing.T
	kube  *fake.Clientset
	clock *clocktesting.FakeClock
	out   bytes.Buffer
	done  []string
	// fails is the step that fails.
	fails string
}

func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, kube: fake.NewClientset(), clock: clocktesting.NewFakeClock(start)}
}

// steps are steps that do nothing but to be noted, and those of the freeze, which freeze for five minutes.
func (f *fixture) steps(names ...string) (all []step) {
	for _, name := range names {
		all = append(all, step{name, "doing " + name, func(m *mover, _ context.Context, _ *StepRecord) error {
			f.done = append(f.done, name)
			if name == stepFreeze {
				until := metav1.NewTime(f.clock.Now().Add(5 * time.Minute))
				m.journal.FrozenUntil = &until
			}
			if name == f.fails {
				return errors.New("no connection")
			}
			return nil
		}})
	}
	return all
}

// run runs steps with what the journal has, as a new process does.
func (f *fixture) run(steps []step) error {
	f.Helper()
	m := &mover{kube: f.kube, clock: f.clock, out: &f.out}
	journal, err := readJournal(f.Context(), f.kube)
	if err != nil {
		f.Fatal(err)
	}
	if m.journal = journal; journal == nil {
		m.journal = &Journal{ID: "abc", Direction: ToServer, Started: m.now(), Resources: []string{"jobsets.jobset.x-k8s.io"}}
	}
	f.done = nil
	return m.run(f.Context(), steps)
}

func TestRunGoesOn(t *testing.T) {
	f := newFixture(t)
	steps := f.steps("a", "b", "c")
	f.fails = "b"
	if err := f.run(steps); err == nil || err.Error() != "doing b: no connection" {
		t.Errorf("error %v", err)
	}
	f.fails = ""
	if err := f.run(steps); err != nil {
		t.Fatal(err)
	}
	if want := []string{"b", "c"}; !slices.Equal(f.done, want) {
		t.Errorf("steps of the second run: %v, want %v", f.done, want)
	}
	want := "1 of 3: doing a\n2 of 3: doing b\n2 of 3: doing b\n3 of 3: doing c\n"
	if diff := cmp.Diff(want, f.out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	journal, err := readJournal(t.Context(), f.kube)
	if err != nil || journal.Ended == nil {
		t.Errorf("the journal does not say that the migration has ended: %v, %v", journal, err)
	}
}

// TestFreezeIsOver checks what is repeated when the command goes on after the freeze has ended by itself.
func TestFreezeIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		fails string
		after time.Duration
		want  []string
	}{
		"in time":                           {"compare", time.Minute, []string{"compare", "route", "lift"}},
		"too late":                          {"compare", time.Hour, []string{"freeze", "copy", "compare", "route", "lift"}},
		"soon too late":                     {"compare", 5*time.Minute - minFreeze/4, []string{"freeze", "copy", "compare", "route", "lift"}},
		"before the freeze":                 {"stop", time.Hour, []string{"stop", "freeze", "copy", "compare", "route", "lift"}},
		"in the freeze":                     {"freeze", time.Hour, []string{"freeze", "copy", "compare", "route", "lift"}},
		"too late for the change of groups": {"route", time.Hour, []string{"freeze", "copy", "compare", "route", "lift"}},
		"too late, but routed":              {"lift", time.Hour, []string{"lift"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			steps := f.steps("stop", stepFreeze, "copy", "compare", stepRoute, "lift")
			f.fails = tc.fails
			if err := f.run(steps); err == nil {
				t.Fatal("no error")
			}
			f.clock.Step(tc.after)
			f.fails = ""
			if err := f.run(steps); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, f.done); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDirection checks what a migration does with the journal of one in the other direction.
func TestDirection(t *testing.T) {
	for name, tc := range map[string]struct {
		journal Journal
		to      Direction
		want    string
	}{
		"the API groups are being switched to the server": {
			Journal{Direction: ToServer, Steps: []StepRecord{{Name: "open"}, {Name: stepRoute}}}, ToCRD,
			"migration abc to-server cannot be undone, because the API groups are being switched to the other server already: " +
				"run kubectl jobset migrate to-server to end it, and then kubectl jobset migrate to-crd",
		},
		"the API groups are being switched to the definition": {
			Journal{Direction: ToCRD, Steps: []StepRecord{{Name: "open"}, {Name: stepServe}}}, ToServer,
			"migration abc to-crd cannot be undone, because the API groups are being switched to the other server already: " +
				"run kubectl jobset migrate to-crd to end it, and then kubectl jobset migrate to-server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tc.journal.ID = "abc"
			if err := tc.journal.write(t.Context(), f.kube); err != nil {
				t.Fatal(err)
			}
			m := &mover{kube: f.kube, clock: f.clock, out: &f.out}
			if err := m.move(t.Context(), tc.to); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestUndoGoesOn checks that a migration whose undoing was interrupted is undone, and not continued.
func TestUndoGoesOn(t *testing.T) {
	f := newFixture(t)
	ended := metav1.NewTime(start)
	journal := &Journal{ID: "abc", Direction: ToCRD, Started: ended, Undoing: true, Steps: []StepRecord{
		{Name: "open", Ended: &ended}, {Name: stepFreeze, Ended: &ended}, {Name: "undo-orphan", Ended: &ended}, {Name: "undo-open", Ended: &ended},
		{Name: "undo-stop", Ended: &ended},
	}}
	if err := journal.write(t.Context(), f.kube); err != nil {
		t.Fatal(err)
	}
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	m := &mover{kube: f.kube, dynamic: client, router: &router{client}, clock: f.clock, out: &f.out}
	if err := m.move(t.Context(), ToCRD); err != nil {
		t.Fatal(err)
	}
	want := "Undoing migration abc to-crd, which began 0s ago\n4 of 4: allowing writes\n" + nothing[ToCRD] + "\n"
	if diff := cmp.Diff(want, f.out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSuspendedTimer checks that a freeze does not begin whose end would not come.
func TestSuspendedTimer(t *testing.T) {
	f := newFixture(t)
	f.kube.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		job := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		job.Spec.Suspend = ptr.To(true)
		return true, job, nil
	})
	err := (&freeze{subjects: subjects, id: "abc", since: start, deadline: start.Add(time.Minute)}).install(t.Context(), f.kube, start)
	if err == nil || !strings.Contains(err.Error(), "the Job jobset-system/jobset-apiserver-migration-freeze, which ends the freeze, is suspended") {
		t.Errorf("error %v", err)
	}
}

// TestNothingToMove checks that a migration of what is where it should be changes nothing.
func TestNothingToMove(t *testing.T) {
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "jobsets.jobset.x-k8s.io"},
	}}
	service := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1alpha2.jobset.x-k8s.io"}, "spec": spec,
		}}
	}
	aggregated := service(map[string]any{"service": map[string]any{"name": "jobset-apiserver", "namespace": "jobset-system"}})
	for name, tc := range map[string]struct {
		direction Direction
		objects   []runtime.Object
		want      string
	}{
		"no definition": {ToServer, nil, nothing[ToServer]},
		"routed":        {ToServer, []runtime.Object{definition, aggregated}, nothing[ToServer]},
		"not routed":    {ToCRD, []runtime.Object{definition, service(map[string]any{})}, nothing[ToCRD]},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			kinds := map[schema.GroupVersionResource]string{definitions: "CustomResourceDefinitionList", outage.APIServices: "APIServiceList"}
			client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, tc.objects...)
			m := &mover{kube: f.kube, dynamic: client, router: &router{client}, clock: f.clock, out: &f.out}
			if err := m.move(t.Context(), tc.direction); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(f.out.String()); got != tc.want {
				t.Errorf("output %q, want %q", got, tc.want)
			}
			if journal, err := readJournal(t.Context(), f.kube); journal != nil || err != nil {
				t.Errorf("journal %v, %v", journal, err)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	at := func(after time.Duration) *metav1.Time { return &metav1.Time{Time: start.Add(after)} }
	j := &Journal{
		ID: "abc", Direction: ToServer, Started: *at(0), Resources: []string{"jobsets.jobset.x-k8s.io"}, FrozenUntil: at(10 * time.Minute),
		Steps: []StepRecord{
			{Name: "open", Started: *at(0), Ended: at(2 * time.Second)},
			{Name: "copy", Started: *at(2 * time.Second), Counts: map[string]int{"jobsets.jobset.x-k8s.io": 10}},
		},
	}
	want := []string{
		"Migration abc to-server of jobsets.jobset.x-k8s.io began 5m ago and has not ended: run kubectl jobset migrate to-server to go on.",
		"Writes are refused until 2026-11-28T06:10:00Z at the latest.",
		"  open       2s",
		"  copy       has not ended, 10 jobsets.jobset.x-k8s.io",
	}
	if diff := cmp.Diff(want, j.lines(start.Add(5*time.Minute))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var none *Journal
	if diff := cmp.Diff([]string{"No migration has begun."}, none.lines(start)); diff != "" {
		t.Errorf("without a journal (-want +got):\n%s", diff)
	}
}
