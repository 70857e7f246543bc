// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

func withClaim(js *jobsetv1alpha2.JobSet) {
	js.Spec.VolumeClaimPolicies = []jobsetv1alpha2.VolumeClaimPolicy{{
		Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
	}}
}

// previewOne previews one set of the name train.
func previewOne(t *testing.T, a *answers) Set {
	t.Helper()
	report, err := preview(t.Context(), &Session{cluster: a}, jobSetsOf("train"))
	if err != nil {
		t.Fatal(err)
	}
	if report.Refused != report.Sets[0].Refused() {
		t.Errorf("the report is refused: %v, and its only set: %v", report.Refused, report.Sets[0].Refused())
	}
	slices.Sort(a.asked)
	set := *report.Sets[0].(*Set)
	set.Live, set.Next = nil, nil
	return set
}

func trainSet(change ...func(*jobsetv1alpha2.JobSet)) map[string]*jobsetv1alpha2.JobSet {
	js := builders.JobSet("train", withHostnames, withClaim, builders.WithJobs("w", 3, 2))
	for _, f := range change {
		f(js)
	}
	return map[string]*jobsetv1alpha2.JobSet{"train": js}
}

var accepted = Verdict{Answer: Accepted}

func workers(change ...func(*ReplicatedJob)) []ReplicatedJob {
	rj := ReplicatedJob{
		Name: "w", Jobs: 3, JobNames: "train-w-[0-2]", Pods: 6, PodNames: "train-w-[0-2]-[0-1]-xxxxx", HostNames: "train-w-[0-2]-[0-1].train",
		Job: &Verdict{Answer: Accepted}, Pod: &Verdict{Answer: Accepted},
	}
	for _, f := range change {
		f(&rj)
	}
	return []ReplicatedJob{rj}
}

// want is the report about the set of trainSet when nothing is refused.
func want(change ...func(*Set)) Set {
	s := Set{
		Object: Object{Kind: "JobSet", Name: "train", Namespace: builders.Namespace, Verdict: accepted}, Jobs: 3, Pods: 6, ReplicatedJobs: workers(),
		Service: &Child{Name: "train", Verdict: accepted}, Claims: []Child{{Name: "data-train", Verdict: accepted}},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func TestPreview(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "train-w-0", field.ErrorList{
		field.Required(field.NewPath("spec", "template", "spec", "containers").Index(0).Child("image"), ""),
	})
	noRight := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`User "jane" cannot create resource "pods" in the namespace "default"`))
	overQuota := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data-train", errors.New("exceeded quota: team"))
	noDryRun := apierrors.NewBadRequest(`admission webhook "x" does not support dry run`)
	noOwner := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "train-w-0", errors.New(`admission webhook "mjob.kb.io" denied the request: JobSet.jobset.x-k8s.io "train" not found`))
	badOwner := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "train-w-0", errors.New(`admission webhook "x" denied the request: no JobSet on a Friday`))
	otherService := func(clusterIP string, selector map[string]string) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: clusterIP, Selector: selector}}
	}
	unfitService := func(warning string) func(*Set) {
		return func(s *Set) {
			s.Service.Exists = true
			if warning != "" {
				s.Service.Verdict.Warnings = []string{warning}
			}
		}
	}

	for name, tc := range map[string]struct {
		cluster     *answers
		want        Set
		wantRefused bool
	}{
		"all is accepted": {cluster: &answers{sets: trainSet()}, want: want()},
		"the set is refused": {
			cluster:     &answers{sets: trainSet(), set: apierrors.NewAlreadyExists(schema.GroupResource{Resource: "jobsets"}, "train")},
			want:        Set{Object: Object{Kind: "JobSet", Name: "train", Namespace: builders.Namespace, Verdict: Verdict{Answer: Refused, Problems: []string{`jobsets "train" already exists`}}}},
			wantRefused: true,
		},
		"the set may not be created by this user": {
			cluster:     &answers{sets: trainSet(), set: noRight},
			want:        Set{Object: Object{Kind: "JobSet", Name: "train", Namespace: builders.Namespace, Verdict: Verdict{Answer: Refused, Problems: []string{noRight.Error()}}}},
			wantRefused: true,
		},
		"the Job is refused, and its pod not asked about": {
			cluster: &answers{sets: trainSet(), job: invalid},
			want: want(func(s *Set) {
				s.ReplicatedJobs = workers(func(rj *ReplicatedJob) {
					rj.Job, rj.Pod = &Verdict{Answer: Refused, Problems: []string{"spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: Required value"}}, nil
				})
			}),
			wantRefused: true,
		},
		"a webhook looks for the owner, which does not exist yet": {cluster: &answers{sets: trainSet(), ofOwner: noOwner}, want: want()},
		"a webhook says something else about the owner": {
			cluster: &answers{sets: trainSet(), job: badOwner},
			want: want(func(s *Set) {
				s.ReplicatedJobs = workers(func(rj *ReplicatedJob) {
					rj.Job, rj.Pod = &Verdict{Answer: Refused, Problems: []string{`spec.replicatedJobs[0]: admission webhook "x" denied the request: no JobSet on a Friday`}}, nil
				})
			}),
			wantRefused: true,
		},
		"the pod may not be asked about": {
			cluster: &answers{sets: trainSet(), pod: noRight},
			want: want(func(s *Set) {
				s.ReplicatedJobs = workers(func(rj *ReplicatedJob) { rj.Pod = &Verdict{Answer: Unknown, Problems: []string{noRight.Error()}} })
			}),
		},
		"a webhook cannot be asked": {
			cluster: &answers{sets: trainSet(), pod: noDryRun},
			want: want(func(s *Set) {
				s.ReplicatedJobs = workers(func(rj *ReplicatedJob) { rj.Pod = &Verdict{Answer: Unknown, Problems: []string{noDryRun.Error()}} })
			}),
		},
		"a claim is refused": {
			cluster: &answers{sets: trainSet(), newClaim: overQuota},
			want: want(func(s *Set) {
				s.Claims[0].Verdict = Verdict{Answer: Refused, Problems: []string{"spec.volumeClaimPolicies[0].templates[0]: exceeded quota: team"}}
			}),
			wantRefused: true,
		},
		"a claim exists": {
			cluster: &answers{sets: trainSet(), claimExists: true, newClaim: overQuota},
			want:    want(func(s *Set) { s.Claims[0].Exists = true }),
		},
		"a Service exists that will do": {
			cluster: &answers{sets: trainSet(), serviceExists: otherService("None", map[string]string{jobsetv1alpha2.JobSetNameKey: "train"})},
			want:    want(unfitService("")),
		},
		"a Service exists that is not headless": {
			cluster: &answers{sets: trainSet(), serviceExists: otherService("10.0.0.1", map[string]string{jobsetv1alpha2.JobSetNameKey: "train"})},
			want:    want(unfitService("it is not headless, so that pods of the set are not found by their DNS names")),
		},
		"a Service exists that selects other pods": {
			cluster: &answers{sets: trainSet(), serviceExists: otherService("None", map[string]string{"app": "x"})},
			want:    want(unfitService("it does not select the pods of the set, so that they are not found by their DNS names")),
		},
		"a Service exists that the user may not read": {
			cluster: &answers{sets: trainSet(), hidden: true, serviceExists: otherService("10.0.0.1", nil)},
			want:    want(unfitService("")),
		},
		"names of Jobs are taken": {
			cluster:     &answers{sets: trainSet(), jobs: []string{"train-w-0", "train-w-1"}},
			want:        want(func(s *Set) { s.ReplicatedJobs[0].TakenNames = "train-w-[0-1]" }),
			wantRefused: true,
		},
		"the quota counts what the cluster makes of the pods": {
			cluster: &answers{sets: trainSet(), limits: []corev1.ResourceQuota{quotaOf(list("requests.cpu", "8"), list("requests.cpu", "1"))}},
			want: want(func(s *Set) {
				s.Quota = []QuotaLine{{Quota: "team", Resource: "requests.cpu", Adds: "12", Used: "1", Hard: "8", Short: "5"}}
			}),
			wantRefused: true,
		},
		"what exists is not counted again": {
			cluster: &answers{
				sets: trainSet(), serviceExists: otherService("None", map[string]string{jobsetv1alpha2.JobSetNameKey: "train"}),
				claimExists: true, limits: []corev1.ResourceQuota{quotaOf(list("services", "0", "persistentvolumeclaims", "0"), nil)},
			},
			want: want(unfitService(""), func(s *Set) { s.Claims[0].Exists = true }),
		},
		"the user may not look around": {
			cluster: &answers{sets: trainSet(), list: apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))},
			want: want(func(s *Set) {
				s.Notes = []string{
					"whether names of Jobs are taken is not known: forbidden: no",
					"whether the quotas are large enough is not known: forbidden: no",
				}
			}),
		},
		"a suspended set": {
			cluster: &answers{sets: trainSet(func(js *jobsetv1alpha2.JobSet) { js.Spec.Suspend = ptr.To(true) })},
			want: want(func(s *Set) {
				s.Notes = []string{"the set is suspended: its Jobs are created suspended, and have pods once the set is resumed"}
			}),
		},
		"the server does not serve its feature gates": {
			cluster: &answers{sets: trainSet(), noGates: apierrors.NewNotFound(schema.GroupResource{}, "")},
			want: want(func(s *Set) {
				s.Notes = []string{"the server does not say which feature gates are on: all are taken to be off"}
			}),
		},
		"the user may not read the feature gates": {
			cluster: &answers{sets: trainSet(), noGates: apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))},
			want: want(func(s *Set) {
				s.Notes = []string{"you may not read which feature gates are on, so all are taken to be off: forbidden: no"}
			}),
		},
		"a set of another controller": {
			cluster: &answers{sets: trainSet(func(js *jobsetv1alpha2.JobSet) { js.Spec.ManagedBy = ptr.To("example.com/x") })},
			want: Set{
				Object: Object{
					Kind: "JobSet", Name: "train", Namespace: builders.Namespace, Verdict: accepted,
					Notes: []string{`the controller "example.com/x" runs the set, which spec.managedBy names: what it creates is not known here`},
				},
				ReplicatedJobs: []ReplicatedJob{{Name: "w"}}, Claims: []Child{},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := previewOne(t, tc.cluster)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if got.Refused() != tc.wantRefused {
				t.Errorf("refused: got %v, want %v", got.Refused(), tc.wantRefused)
			}
		})
	}
}

func TestPreviewAsksAboutOneOfEachKind(t *testing.T) {
	a := &answers{sets: trainSet(builders.WithJobs("v", 5, 1))}
	previewOne(t, a)
	wantAsked := []string{"Claim data-train", "Job train-v-0", "Job train-w-0", "JobSet train", "Pod train-v-0-0-*", "Pod train-w-0-0-*", "Service train"}
	if diff := cmp.Diff(wantAsked, a.asked); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

// TestPreviewUsesTheGatesOfTheServer looks at a label that Jobs have only while the gate RestartJob is on.
func TestPreviewUsesTheGatesOfTheServer(t *testing.T) {
	for _, on := range []bool{true, false} {
		a := &answers{sets: trainSet(), gates: gates.Gates{RestartJob: on}}
		previewOne(t, a)
		if _, found := a.lastJob.Labels[jobsetv1alpha2.JobRestartAttemptKey]; found != on {
			t.Errorf("RestartJob %v: labels of the Job %v", on, a.lastJob.Labels)
		}
	}
}

func TestTakenNameIsReplacedForTheCheck(t *testing.T) {
	a := &answers{sets: trainSet(), jobs: []string{"train-w-0"}}
	previewOne(t, a)
	if !slices.Contains(a.asked, "Job train-w-0-*") {
		t.Errorf("the Job was asked about as %q, a name that is taken", a.asked)
	}
}

func TestWarningsBelongToTheirObjects(t *testing.T) {
	got := previewOne(t, &answers{sets: trainSet(), warning: "careful"})
	warnings := [][]string{
		got.Verdict.Warnings, got.Service.Verdict.Warnings, got.Claims[0].Verdict.Warnings, got.ReplicatedJobs[0].Job.Warnings, got.ReplicatedJobs[0].Pod.Warnings,
	}
	if diff := cmp.Diff([][]string{{"JobSet: careful"}, {"Service: careful"}, {"Claim: careful"}, {"Job: careful"}, {"Pod: careful"}}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestPreviewEndsWhenNoServerAnswers(t *testing.T) {
	a := &answers{sets: trainSet(), pod: errors.New("connection refused")}
	if _, err := preview(t.Context(), &Session{cluster: a}, jobSetsOf("train")); err == nil {
		t.Error("no error")
	}
}
