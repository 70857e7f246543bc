// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// effectOnJobSet is a change of a set, and what the preview says that it does.
type effectOnJobSet struct {
	live   []func(*jobsetv1alpha2.JobSet)
	change func(*jobsetv1alpha2.JobSet)
	// ends means that all Jobs have succeeded before the change.
	ends bool
	want Effect
	// has returns whether a Job has the change.
	has func(*batchv1.Job) bool
	// later looks at what the controller does after the change, beyond what all changes of the effect do.
	later func(*testing.T, *jobSetWorld)
}

const leaderJob, firstWorker = "train-leader-0", "train-workers-0"

var effectsOnJobSets = map[string]effectOnJobSet{
	"suspend":                           {change: suspend, want: EffectSuspend},
	"resume":                            {live: []func(*jobsetv1alpha2.JobSet){suspend}, change: resume, want: EffectResume},
	"suspend false where it was absent": {change: resume, want: EffectNone},
	"elastic size":                      {change: size(5), want: EffectScale},
	"elastic size of a suspended set": {
		live: []func(*jobsetv1alpha2.JobSet){suspend}, change: size(5), want: EffectOnResume,
		has: func(job *batchv1.Job) bool { return job.Name == leaderJob || *job.Spec.Parallelism == 5 },
	},
	"pod template of a suspended set": {
		live: []func(*jobsetv1alpha2.JobSet){suspend}, change: selectNodes, want: EffectOnResume, has: onSelectedNodes,
	},
	"pod template together with a resume": {
		live:   []func(*jobsetv1alpha2.JobSet){suspend},
		change: func(js *jobsetv1alpha2.JobSet) { selectNodes(js); resume(js) }, want: EffectResume, has: onSelectedNodes,
	},
	"groups of pods of a suspended set": {
		live: []func(*jobsetv1alpha2.JobSet){suspend, asGang}, want: EffectOnResume,
		change: func(js *jobsetv1alpha2.JobSet) {
			js.Spec.Scheduling.SchedulingPolicy = &jobsetv1alpha2.SchedulingPolicy{Basic: &jobsetv1alpha2.BasicSchedulingPolicy{}}
		},
		has: func(*batchv1.Job) bool { return true }, // the groups have it, which later looks at
		later: func(t *testing.T, w *jobSetWorld) {
			basic := 0
			for _, group := range w.groups {
				if spec, _ := group.Object["spec"].(map[string]any); group.GetKind() == "PodGroup" && strings.Contains(valueText(spec["schedulingPolicy"]), "basic") {
					basic++
				}
			}
			if basic == 0 {
				t.Errorf("no PodGroup has the policy: %v", w.groups)
			}
		},
	},
	"time to live": {
		change: func(js *jobsetv1alpha2.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](60) }, want: EffectImmediate,
		later: func(t *testing.T, w *jobSetWorld) {
			for _, name := range w.names() {
				w.end(name, batchv1.JobComplete)
			}
			w.rest()
			if w.did.SetDeleted {
				t.Error("the set is deleted at its end")
			}
			w.now = metav1.NewTime(w.now.Add(time.Minute))
			w.rest()
			if !w.did.SetDeleted {
				t.Error("the set is not deleted a minute after its end")
			}
		},
	},
	"time to live of a set that has finished": {
		ends: true, change: func(js *jobsetv1alpha2.JobSet) { js.Spec.TTLSecondsAfterFinished = ptr.To[int32](60) }, want: EffectImmediate,
		later: func(t *testing.T, w *jobSetWorld) {
			w.now = metav1.NewTime(w.now.Add(time.Minute))
			w.rest()
			if !w.did.SetDeleted {
				t.Error("the set is not deleted a minute after its end")
			}
		},
	},
	"a set that has finished": {ends: true, change: suspend, want: EffectNone},
	"active deadline": {
		change: func(js *jobsetv1alpha2.JobSet) { js.Spec.ActiveDeadlineSeconds = ptr.To[int64](3600) }, want: EffectImmediate,
		later: func(t *testing.T, w *jobSetWorld) {
			state("")(t, w)
			w.now = metav1.NewTime(w.js.Status.StartTime.Add(time.Hour))
			w.rest()
			state("Failed")(t, w)
		},
	},
	"failure policy": {
		change: restarts, want: EffectImmediate,
		later: func(t *testing.T, w *jobSetWorld) {
			w.end(leaderJob, batchv1.JobFailed)
			w.rest()
			if w.js.Status.Restarts != 1 || w.js.Status.TerminalState != "" {
				t.Errorf("%d restarts, state %q: want one restart", w.js.Status.Restarts, w.js.Status.TerminalState)
			}
		},
	},
	"success policy": {
		change: func(js *jobsetv1alpha2.JobSet) {
			js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAny}
		}, want: EffectImmediate,
		later: func(t *testing.T, w *jobSetWorld) {
			w.end(leaderJob, batchv1.JobComplete)
			w.rest()
			state("Completed")(t, w)
		},
	},
	"startup policy": {
		live: []func(*jobsetv1alpha2.JobSet){restarts}, want: EffectNextAttempt,
		change: func(js *jobsetv1alpha2.JobSet) {
			js.Spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.InOrder}
		},
		later: func(t *testing.T, w *jobSetWorld) {
			if len(w.did.Created) < 2 || !slices.Equal(w.did.Created[0], []string{leaderJob}) {
				t.Errorf("created %v: want the leader before the workers", w.did.Created)
			}
		},
	},
	"coordinator": {
		live: []func(*jobsetv1alpha2.JobSet){restarts}, want: EffectNextAttempt, has: annotated(jobsetv1alpha2.CoordinatorKey),
		change: func(js *jobsetv1alpha2.JobSet) {
			js.Spec.Coordinator = &jobsetv1alpha2.Coordinator{ReplicatedJob: "leader"}
		},
	},
	"network": {
		live: []func(*jobsetv1alpha2.JobSet){restarts}, want: EffectNextAttempt,
		change: func(js *jobsetv1alpha2.JobSet) {
			js.Spec.Network = &jobsetv1alpha2.Network{EnableDNSHostnames: ptr.To(true), Subdomain: "other"}
		},
		has: func(job *batchv1.Job) bool { return job.Spec.Template.Spec.Subdomain == "other" },
	},
	"volume claims": {
		live: []func(*jobsetv1alpha2.JobSet){restarts, func(js *jobsetv1alpha2.JobSet) {
			for i := range js.Spec.ReplicatedJobs {
				main := &js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers[0]
				main.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			}
		}}, want: EffectNextAttempt,
		change: func(js *jobsetv1alpha2.JobSet) {
			js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}}
		},
		has: func(job *batchv1.Job) bool { return len(job.Spec.Template.Spec.Volumes) == 1 },
	},
	"exclusive placement": {
		live: []func(*jobsetv1alpha2.JobSet){restarts}, want: EffectNextAttempt, change: annotate(jobsetv1alpha2.ExclusiveKey, "rack"),
		has: annotated(jobsetv1alpha2.ExclusiveKey),
	},
	"strategy of exclusive placement": {
		live: []func(*jobsetv1alpha2.JobSet){restarts, annotate(jobsetv1alpha2.ExclusiveKey, "rack")}, want: EffectNextAttempt,
		change: annotate(jobsetv1alpha2.NodeSelectorStrategyKey, "true"), has: annotated(jobsetv1alpha2.NodeSelectorStrategyKey),
	},
	"queue":        {change: func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: "q"} }, want: EffectImmediate},
	"other labels": {change: func(js *jobsetv1alpha2.JobSet) { js.Labels = map[string]string{"team": "ml"} }, want: EffectNone},
}

// TestEffectsOnJobSets has the controller decide about a set that runs and is changed, and compares what it does with the effect of which
// the preview speaks. A set has one Job leader with one pod, and three Jobs workers with two each.
func TestEffectsOnJobSets(t *testing.T) {
	seen := sets.New[string]()
	for name, tc := range effectsOnJobSets {
		t.Run(name, func(t *testing.T) {
			w := newJobSetWorld(t, existing(tc.live...))
			w.rest()
			if tc.ends {
				for _, name := range w.names() {
					w.end(name, batchv1.JobComplete)
				}
				w.rest()
			}
			before := w.edit(tc.change)
			changes := changesBetween(encoded(before), encoded(w.js))
			if len(changes) == 0 {
				t.Fatal("nothing changes")
			}
			for _, c := range changes {
				effect, text := update{live: before, next: w.js}.effect(c.Field)
				if effect != tc.want {
					t.Errorf("%s: the effect is %s (%s): want %s", c.Field, effect, text, tc.want)
				}
				section, _, _ := strings.Cut(strings.TrimPrefix(c.Field, "spec."), ".")
				section, _, _ = strings.Cut(section, "[")
				seen.Insert(section)
			}
			attempts := len(before.Status.Attempts)
			w.rest()
			tc.check(t, w, attempts)
			if tc.later != nil {
				tc.later(t, w)
			}
		})
	}
	for section := range sectionEffects {
		if !seen.Has(section) {
			t.Errorf("no case changes spec.%s", section)
		}
	}
}

// check looks at what the controller has done, and for changes with a later effect at what it does then.
func (tc *effectOnJobSet) check(t *testing.T, w *jobSetWorld, attempts int) {
	t.Helper()
	all, workers := w.names(), slices.DeleteFunc(w.names(), func(name string) bool { return name == leaderJob })
	want := map[Effect]deeds{EffectSuspend: {Suspended: all}, EffectResume: {Resumed: all}, EffectScale: {Sized: workers}}[tc.want]
	got := w.did
	if tc.want == EffectOnResume {
		got.Sized = nil // no pod runs
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the controller did (-want +got):\n%s", diff)
	}
	switch tc.want {
	case EffectResume:
		if len(w.js.Status.Attempts) != attempts+1 {
			t.Errorf("%d attempts, %d before: want one more", len(w.js.Status.Attempts), attempts)
		}
	case EffectOnResume:
		w.edit(resume)
		w.rest()
		if diff := cmp.Diff(all, w.did.Resumed); diff != "" {
			t.Errorf("resumed (-want +got):\n%s", diff)
		}
	case EffectNextAttempt:
		tc.have(t, w, false)
		w.end(firstWorker, batchv1.JobFailed)
		w.rest()
		if diff := cmp.Diff(all, slices.Sorted(slices.Values(slices.Concat(w.did.Created...)))); diff != "" {
			t.Errorf("created in the next attempt (-want +got):\n%s", diff)
		}
	case EffectNone, EffectImmediate, EffectScale, EffectSuspend:
		return
	}
	tc.have(t, w, true)
}

// have expects that all Jobs have the change, or none.
func (tc *effectOnJobSet) have(t *testing.T, w *jobSetWorld, want bool) {
	t.Helper()
	for _, name := range w.names() {
		if tc.has != nil && tc.has(w.jobs[name]) != want {
			t.Errorf("Job %s has the change: %v: want %v", name, !want, want)
		}
	}
}
