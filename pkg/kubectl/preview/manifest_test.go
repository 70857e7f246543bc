// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// manifestOf returns objects of the kinds, each with the name of its kind in lower case.
func manifestOf(kinds ...string) (m manifest) {
	for _, kind := range kinds {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetKind(kind)
		o.SetName(strings.ToLower(kind))
		o.SetNamespace(builders.Namespace)
		m = append(m, o)
	}
	return m
}

func previewWith(t *testing.T, a *answers, m manifest) *Set {
	t.Helper()
	report, err := preview(t.Context(), &Session{cluster: a, manifest: m}, jobSetsOf("train"))
	if err != nil {
		t.Fatal(err)
	}
	return report.Sets[0].(*Set)
}

func TestObjectsOfTheManifestAreNotMissing(t *testing.T) {
	withAccount := trainSet(func(js *jobsetv1alpha2.JobSet) {
		js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.ServiceAccountName = "serviceaccount"
	})
	lacks := `error looking up service account default/serviceaccount: serviceaccount "serviceaccount" not found`
	for name, tc := range map[string]struct {
		manifest manifest
		want     *Verdict
	}{
		"the account is in the manifest":      {manifest: manifestOf("Secret", "ServiceAccount"), want: &Verdict{Answer: Accepted}},
		"the account is nowhere":              {manifest: manifestOf("Secret"), want: &Verdict{Answer: Refused, Problems: []string{"spec.replicatedJobs[0].template.spec.template.spec.serviceAccountName: " + lacks}}},
		"another account is in the manifest":  {manifest: renamed(manifestOf("ServiceAccount"), "other"), want: &Verdict{Answer: Refused, Problems: []string{"spec.replicatedJobs[0].template.spec.template.spec.serviceAccountName: " + lacks}}},
		"the account is of another namespace": {manifest: moved(manifestOf("ServiceAccount"), "other"), want: &Verdict{Answer: Refused, Problems: []string{"spec.replicatedJobs[0].template.spec.template.spec.serviceAccountName: " + lacks}}},
		"a claim of this name is no account":  {manifest: renamed(manifestOf("PersistentVolumeClaim"), "serviceaccount"), want: &Verdict{Answer: Refused, Problems: []string{"spec.replicatedJobs[0].template.spec.template.spec.serviceAccountName: " + lacks}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := previewWith(t, &answers{sets: withAccount, lacks: lacks}, tc.manifest)
			if diff := cmp.Diff(tc.want, got.ReplicatedJobs[0].Pod); diff != "" {
				t.Errorf("verdict on the pod (-want +got):\n%s", diff)
			}
		})
	}
}

func renamed(m manifest, name string) manifest { m[0].SetName(name); return m }

func moved(m manifest, namespace string) manifest { m[0].SetNamespace(namespace); return m }

func TestReferencesThatAreMissing(t *testing.T) {
	set := trainSet(func(js *jobsetv1alpha2.JobSet) {
		pod := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
		pod.Volumes = append(pod.Volumes,
			corev1.Volume{Name: "a", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "configmap"}}}},
			corev1.Volume{Name: "b", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "weights"}}},
			corev1.Volume{Name: "c", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-train"}}})
		pod.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "token"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "maybe"}, Optional: ptr.To(true)}},
		}
	})
	const spec = "spec.replicatedJobs[0].template.spec.template.spec."
	configMap := spec + `volumes[0].configMap.name: there is no ConfigMap "configmap"; the pods wait for it`
	token := spec + `containers[0].envFrom[0].secretRef.name: there is no Secret "token"; the pods wait for it`
	claim := spec + `volumes[1].persistentVolumeClaim.claimName: there is no PersistentVolumeClaim "weights"; the pods wait for it`
	for name, tc := range map[string]struct {
		exist    []string
		hidden   bool
		manifest manifest
		want     []string
	}{
		"nothing exists":         {want: []string{configMap, claim, token}},
		"one is in the manifest": {manifest: manifestOf("ConfigMap"), want: []string{claim, token}},
		"two exist":              {exist: []string{"secrets/token", "persistentvolumeclaims/weights"}, want: []string{configMap}},
		"the user may not look":  {hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := previewWith(t, &answers{sets: set, others: tc.exist, hidden: tc.hidden}, tc.manifest)
			if diff := cmp.Diff(tc.want, got.ReplicatedJobs[0].Pod.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuotaServiceAndClaimOfTheManifest(t *testing.T) {
	quota := manifestOf("ResourceQuota")
	if err := unstructured.SetNestedMap(quota[0].Object, map[string]any{"pods": "5"}, "spec", "hard"); err != nil {
		t.Fatal(err)
	}
	service := renamed(manifestOf("Service"), "train")
	claim := renamed(manifestOf("PersistentVolumeClaim"), "data-train")
	got := previewWith(t, &answers{sets: trainSet()}, slices.Concat(quota, service, claim, manifestOf("LimitRange")))
	want := want(func(s *Set) {
		s.Service = &Child{Name: "train", Exists: true, Verdict: Verdict{Answer: Accepted, Warnings: []string{"it is not headless, so that pods of the set are not found by their DNS names"}}}
		s.Claims[0].Exists = true
		s.Quota = []QuotaLine{{Quota: "resourcequota", Resource: "pods", Adds: "6", Used: "0", Hard: "5", Short: "1"}}
		s.Notes = []string{"the LimitRange limitrange of the manifest is not applied to the pods: create it first to preview its effect"}
	})
	got.Live, got.Next = nil, nil
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	// A quota of the cluster is replaced by that of the same name, which may be larger.
	if err := unstructured.SetNestedMap(quota[0].Object, map[string]any{"pods": "50"}, "spec", "hard"); err != nil {
		t.Fatal(err)
	}
	live := quotaOf(list("pods", "5"), list("pods", "4"))
	live.Name = "resourcequota"
	got = previewWith(t, &answers{sets: trainSet(), limits: []corev1.ResourceQuota{live}}, quota)
	if diff := cmp.Diff([]QuotaLine{{Quota: "resourcequota", Resource: "pods", Adds: "6", Used: "4", Hard: "50"}}, got.Quota); diff != "" {
		t.Errorf("quota (-want +got):\n%s", diff)
	}
}

func TestNamespaceOfTheManifest(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, builders.Namespace)
	got := previewWith(t, &answers{sets: trainSet(), set: missing}, renamed(manifestOf("Namespace"), builders.Namespace))
	if got.Refused() || got.Verdict.Answer != Unknown || len(got.Notes) != 1 {
		t.Errorf("verdict %v, notes %q", got.Verdict, got.Notes)
	}
	if got = previewWith(t, &answers{sets: trainSet(), set: missing}, nil); !got.Refused() {
		t.Errorf("without the namespace in the manifest: %v", got.Verdict)
	}
}

// TestProblemsNameTheFieldOfTheSet has answers about children, as servers give them.
func TestProblemsNameTheFieldOfTheSet(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		where locator
		err   *apierrors.StatusError
		want  []string
	}{
		"a field of a Job": {jobField(2), apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "x", field.ErrorList{
			field.Invalid(field.NewPath("spec", "backoffLimit"), -1, "must be greater than or equal to 0"),
			field.Invalid(field.NewPath("spec", "backoffLimit"), -1, "must be greater than or equal to 0"),
		}), []string{"spec.replicatedJobs[2].template.spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"}},
		"the name of a Job": {jobField(0), apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "x", field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), "X", "must be lower case"),
		}), []string{`spec.replicatedJobs[0].name: Invalid value: "X": must be lower case`}},
		"a field of a pod": {podField(1), apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", field.ErrorList{
			field.Required(field.NewPath("spec", "containers").Index(0).Child("image"), ""),
		}), []string{"spec.replicatedJobs[1].template.spec.template.spec.containers[0].image: Required value"}},
		"a limit range":    {podField(0), apierrors.NewForbidden(pods, "x", errors.New("maximum cpu usage per Container is 800m, but limit is 1")), []string{"spec.replicatedJobs[0].template.spec.template.spec.containers: maximum cpu usage per Container is 800m, but limit is 1"}},
		"a priority class": {podField(0), apierrors.NewForbidden(pods, "x", errors.New("no PriorityClass with name high was found")), []string{"spec.replicatedJobs[0].template.spec.template.spec.priorityClassName: no PriorityClass with name high was found"}},
		"a quota":          {jobField(3), apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", errors.New("exceeded quota: team")), []string{"spec.replicatedJobs[3]: exceeded quota: team"}},
		"a policy":         {sameField, denial(), []string{"ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"}},
		"the set itself":   {sameField, apierrors.NewForbidden(schema.GroupResource{Resource: "jobsets"}, "x", errors.New("no")), []string{`jobsets "x" is forbidden: no`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(tc.err.Status(), tc.where)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	warning := podField(1).locatedWarning("spec.containers[0].env[1]: hides previous definition")
	if want := "spec.replicatedJobs[1].template.spec.template.spec.containers[0].env[1]: hides previous definition"; warning != want {
		t.Errorf("warning: got %q, want %q", warning, want)
	}
}

// denial is the answer when a policy denies a set. It is Invalid, and its cause names no field.
func denial() *apierrors.StatusError {
	const message = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "jobsets"}, "x", errors.New(message))
	err.ErrStatus.Reason, err.ErrStatus.Details.Causes = metav1.StatusReasonInvalid, []metav1.StatusCause{{Message: message}}
	return err
}

func TestProblemsOfSeveralReplicatedJobsAreShownOnce(t *testing.T) {
	refused := func(i int) *Verdict {
		return &Verdict{Answer: Refused, Problems: []string{jobField(i)("spec.x") + ": bad"}}
	}
	s := &Set{Object: Object{Kind: "JobSet", Name: "train", Namespace: "ns", Verdict: accepted}, ReplicatedJobs: []ReplicatedJob{
		{Name: "a", Jobs: 1, JobNames: "train-a-0", Job: refused(0)}, {Name: "b", Jobs: 1, JobNames: "train-b-0", Job: &accepted}, {Name: "c", Jobs: 1, JobNames: "train-c-0", Job: refused(2)},
	}}
	want := []string{
		"  KIND  NAMES      COUNT  ANSWER", "  Job   train-a-0  1      Refused", "    spec.replicatedJobs[0,2].template.spec.x: bad",
		"  Job   train-b-0  1      Accepted", "  Job   train-c-0  1      Refused",
	}
	if diff := cmp.Diff(want, renderChildren(s, cli.Terminal{})); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
