// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
)

func TestStatusOfDisabledFeatures(t *testing.T) {
	full := api.JobSetStatus{
		PreviousInPlaceRestartAttempt: ptr.To[int32](1), CurrentInPlaceRestartAttempt: ptr.To[int32](2),
		StartTime: ptr.To(metav1.Unix(1_000_000_000, 0)), ExecutionAttempts: ptr.To[int32](5),
		ReplicatedJobsStatus: []api.ReplicatedJobStatus{{Name: "workers", JobRestarts: []int32{1}, JobRestartsCountTowardsMax: []int32{1}}},
	}
	bare := api.JobSetStatus{ReplicatedJobsStatus: []api.ReplicatedJobStatus{{Name: "workers"}}}
	singles := api.JobSetStatus{ReplicatedJobsStatus: full.ReplicatedJobsStatus}
	inPlace, timed, executed, fewer := bare, bare, bare, *full.DeepCopy()
	inPlace.PreviousInPlaceRestartAttempt, inPlace.CurrentInPlaceRestartAttempt = full.PreviousInPlaceRestartAttempt, full.CurrentInPlaceRestartAttempt
	timed.StartTime = full.StartTime
	executed.ExecutionAttempts = full.ExecutionAttempts
	fewer.StartTime, fewer.ExecutionAttempts = ptr.To(metav1.Unix(900_000_000, 0)), ptr.To[int32](3)
	kept := *full.DeepCopy()
	kept.ExecutionAttempts = fewer.ExecutionAttempts
	all := gates.Gates{InPlaceRestart: true, RestartJob: true, JobSetActiveDeadlineSeconds: true, ExecutionAttemptsTracking: true}
	cases := map[string]struct {
		gates  gates.Gates
		stored api.JobSetStatus
		want   api.JobSetStatus
	}{
		"all off":                                {want: bare},
		"all on":                                 {gates: all, want: full},
		"RestartJob on":                          {gates: gates.Gates{RestartJob: true}, want: singles},
		"InPlaceRestart on":                      {gates: gates.Gates{InPlaceRestart: true}, want: inPlace},
		"JobSetActiveDeadlineSeconds on":         {gates: gates.Gates{JobSetActiveDeadlineSeconds: true}, want: timed},
		"ExecutionAttemptsTracking on":           {gates: gates.Gates{ExecutionAttemptsTracking: true}, want: executed},
		"all off, but stored while they were on": {stored: full, want: full},
		"all off, the count of executions stays as it is": {stored: fewer, want: kept},
		"all on, the count of executions follows":         {gates: all, stored: fewer, want: full},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, status := strategies(tc.gates)
			prev := plain(func(js *api.JobSet) { js.Status = *tc.stored.DeepCopy() })
			next := prev.DeepCopy()
			next.Status = *full.DeepCopy()
			if err := rest.BeforeUpdate(status, inNamespace(), next, prev); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, next.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// If the count of executions were lost while its feature is off, it would start again, below numbers that were already used.
func TestExecutionAttemptsAreKeptWhileTheGateIsOff(t *testing.T) {
	cases := map[string]struct {
		gates gates.Gates
		want  *int32
	}{
		"off": {want: ptr.To[int32](3)},
		"on":  {gates: gates.Gates{ExecutionAttemptsTracking: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, status := strategies(tc.gates)
			prev := plain(func(js *api.JobSet) { js.Status.ExecutionAttempts = ptr.To[int32](3) })
			next := prev.DeepCopy()
			next.Status = api.JobSetStatus{Restarts: 1}
			if err := rest.BeforeUpdate(status, inNamespace(), next, prev); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(api.JobSetStatus{Restarts: 1, ExecutionAttempts: tc.want}, next.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeadlineOfADisabledFeature(t *testing.T) {
	on := gates.Gates{JobSetActiveDeadlineSeconds: true}
	cases := map[string]struct {
		gates          gates.Gates
		stored, sent   *int64
		create         bool
		want           *int64
		wantGeneration int64
	}{
		"off, on a create":                   {create: true, sent: ptr.To[int64](60), wantGeneration: 1},
		"on, on a create":                    {gates: on, create: true, sent: ptr.To[int64](60), want: ptr.To[int64](60), wantGeneration: 1},
		"off, added":                         {sent: ptr.To[int64](60), wantGeneration: 4},
		"on, added":                          {gates: on, sent: ptr.To[int64](60), want: ptr.To[int64](60), wantGeneration: 5},
		"off, stored while it was on":        {stored: ptr.To[int64](60), sent: ptr.To[int64](60), want: ptr.To[int64](60), wantGeneration: 4},
		"off, stored, changes":               {stored: ptr.To[int64](60), sent: ptr.To[int64](90), want: ptr.To[int64](90), wantGeneration: 5},
		"off, stored, is removed":            {stored: ptr.To[int64](60), wantGeneration: 5},
		"off, a bad value is dropped as any": {sent: ptr.To[int64](-1), wantGeneration: 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			main, _ := strategies(tc.gates)
			js := plain(func(js *api.JobSet) { js.Spec.ActiveDeadlineSeconds, js.Generation = tc.sent, 4 })
			if tc.create {
				main.PrepareForCreate(inNamespace(), js)
			} else if err := rest.BeforeUpdate(main, inNamespace(), js, plain(func(js *api.JobSet) { js.Spec.ActiveDeadlineSeconds, js.Generation = tc.stored, 4 })); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, js.Spec.ActiveDeadlineSeconds); diff != "" {
				t.Errorf("deadline (-want +got):\n%s", diff)
			}
			if js.Generation != tc.wantGeneration {
				t.Errorf("generation is %d, want %d", js.Generation, tc.wantGeneration)
			}
		})
	}
}

// recorder collects warnings.
type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

func TestFieldsOfGatesThatAreOff(t *testing.T) {
	const (
		ignoredDeadline = "spec.activeDeadlineSeconds: ignored, because the feature gate JobSetActiveDeadlineSeconds of the API server is off"
		refusedDeadline = "spec.activeDeadlineSeconds: Forbidden: must not be set while the feature gate JobSetActiveDeadlineSeconds of the API server is off"
	)
	limited := func(js *api.JobSet) { js.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }
	cases := map[string]struct {
		directive string
		gates     gates.Gates
		stored    func(*api.JobSet)
		wantWarn  []string
		wantErr   string
	}{
		"no directive":               {wantWarn: []string{ignoredDeadline}},
		"Warn":                       {directive: "Warn", wantWarn: []string{ignoredDeadline}},
		"Ignore":                     {directive: "Ignore"},
		"Strict":                     {directive: "Strict", wantErr: refusedDeadline},
		"Strict, with the gate":      {directive: "Strict", gates: gates.Gates{JobSetActiveDeadlineSeconds: true}},
		"Strict, stored":             {directive: "Strict", stored: limited},
		"no directive, but stored":   {stored: limited},
		"no directive, but the gate": {gates: gates.Gates{JobSetActiveDeadlineSeconds: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			main, _ := strategies(tc.gates)
			var warned recorder
			ctx := warning.WithWarningRecorder(strategy.WithFieldValidation(inNamespace(), tc.directive), &warned)
			js, prev := plain(limited), plain()
			if tc.stored != nil {
				tc.stored(prev)
			}
			main.PrepareForUpdate(ctx, js, prev)
			errs := main.ValidateUpdate(ctx, js, prev)
			if got := fmt.Sprint(errs.ToAggregate()); tc.wantErr == "" && len(errs) > 0 || tc.wantErr != "" && got != tc.wantErr {
				t.Errorf("errors on an update: %s, want %q", got, tc.wantErr)
			}
			if diff := cmp.Diff(tc.wantWarn, []string(warned)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if tc.stored != nil {
				return
			}
			created := plain(limited)
			main.PrepareForCreate(ctx, created)
			if errs := main.Validate(ctx, created); (len(errs) > 0) != (tc.wantErr != "") {
				t.Errorf("errors on a create: %v, want %q", errs, tc.wantErr)
			}
		})
	}
}

func TestGatesReachValidation(t *testing.T) {
	inPlace := func(js *api.JobSet) {
		js.Spec.FailurePolicy = &api.FailurePolicy{RestartStrategy: api.RestartStrategyInPlaceRestart}
		js.Spec.ReplicatedJobs = nil
	}
	single := func(js *api.JobSet) {
		js.Spec.FailurePolicy = &api.FailurePolicy{RestartStrategy: api.RestartStrategyRecreate, Rules: []api.FailurePolicyRule{{Name: "r", Action: api.RestartJob}}}
	}
	grow := func(js *api.JobSet) {
		js.Spec.ReplicatedJobs[0].Template.Spec.Parallelism, js.Spec.ReplicatedJobs[0].Template.Spec.Completions = ptr.To[int32](8), ptr.To[int32](8)
	}
	shrink := func(js *api.JobSet) {
		js.Spec.Suspend = ptr.To(true)
		js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
	}
	cases := map[string]struct {
		gates       gates.Gates
		prev        *api.JobSet
		change      func(*api.JobSet)
		wantRefused bool
	}{
		"InPlaceRestart off":               {change: inPlace, wantRefused: true},
		"InPlaceRestart on":                {gates: gates.Gates{InPlaceRestart: true}, change: inPlace},
		"InPlaceRestart off, used already": {prev: plain(inPlace), change: inPlace},
		"RestartJob off":                   {change: single, wantRefused: true},
		"RestartJob on":                    {gates: gates.Gates{RestartJob: true}, change: single},
		"RestartJob off, used already":     {prev: plain(single), change: single},
		"ElasticJobSet off, on an update":  {prev: plain(), change: grow, wantRefused: true},
		"ElasticJobSet on, on an update":   {gates: gates.Gates{ElasticJobSet: true}, prev: plain(), change: grow},
		"ElasticJobSet off, on a create":   {change: grow},
		"MutablePodResources off":          {prev: plain(), change: shrink, wantRefused: true},
		"MutablePodResources on":           {gates: gates.Gates{MutablePodResourcesForSuspendedJobSets: true}, prev: plain(), change: shrink},
		"all on, an object without either": {gates: gates.Gates{InPlaceRestart: true, RestartJob: true, ElasticJobSet: true}, change: func(*api.JobSet) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			main, _ := strategies(tc.gates)
			next := plain(tc.change)
			errs := main.Validate(inNamespace(), next)
			if tc.prev != nil {
				errs = main.ValidateUpdate(inNamespace(), next, tc.prev)
			}
			if refused := len(errs) > 0; refused != tc.wantRefused {
				t.Errorf("refused is %v, want %v: %v", refused, tc.wantRefused, errs)
			}
		})
	}
}
