// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package volumeclaims

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// templateSpec is what a user writes.
func templateSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// liveSpec is what the main API makes of it.
func liveSpec() corev1.PersistentVolumeClaimSpec {
	spec := templateSpec()
	spec.VolumeName = "pv-1"
	spec.StorageClassName = ptr.To("standard")
	spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
	spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1024Mi")
	return spec
}

func TestDiffering(t *testing.T) {
	cases := map[string]struct {
		change func(template *corev1.PersistentVolumeClaimSpec)
		want   []string
	}{
		"what the main API filled in does not count": {change: func(*corev1.PersistentVolumeClaimSpec) {}},
		"an empty template fits everything":          {change: func(s *corev1.PersistentVolumeClaimSpec) { *s = corev1.PersistentVolumeClaimSpec{} }},
		"the same values fit":                        {change: func(s *corev1.PersistentVolumeClaimSpec) { *s = liveSpec() }},
		"another size": {
			change: func(s *corev1.PersistentVolumeClaimSpec) {
				s.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
			},
			want: []string{"resources.requests"},
		},
		"a limit that the claim lacks": {
			change: func(s *corev1.PersistentVolumeClaimSpec) {
				s.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			},
			want: []string{"resources.limits"},
		},
		"other fields": {
			change: func(s *corev1.PersistentVolumeClaimSpec) {
				s.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
				s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
				s.VolumeName = "pv-2"
				s.StorageClassName = ptr.To("fast")
				s.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
				s.DataSource = &corev1.TypedLocalObjectReference{Kind: "A", Name: "a"}
				s.DataSourceRef = &corev1.TypedObjectReference{Kind: "A", Name: "a"}
				s.VolumeAttributesClassName = ptr.To("gold")
			},
			want: []string{
				"accessModes", "selector", "volumeName", "storageClassName", "volumeMode", "dataSource", "dataSourceRef",
				"volumeAttributesClassName",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			template, live := templateSpec(), liveSpec()
			c.change(&template)
			if diff := cmp.Diff(c.want, differing(&template, &live)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// warnings keeps what is said to the client.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// validate runs the plugin for a new JobSet "js" with two templates "a" and "b".
func validate(t *testing.T, get getClaim, retention *jobset.VolumeRetentionPolicy) (warnings, error) {
	t.Helper()
	return validateWith(t, &mainAPI{get: get}, jobset.VolumeClaimPolicy{
		Templates: []corev1.PersistentVolumeClaim{template("a"), template("b")}, RetentionPolicy: retention,
	})
}

func template(name string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: templateSpec()}
}

func validateWith(t *testing.T, main *mainAPI, policies ...jobset.VolumeClaimPolicy) (warnings, error) {
	t.Helper()
	js := &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns"}, Spec: jobset.JobSetSpec{VolumeClaimPolicies: policies},
	}
	plugin := New()
	plugin.claims = main
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	var said warnings
	ctx := warning.WithWarningRecorder(t.Context(), &said)
	// The request of a generated name has no name; the object has.
	attributes := admission.NewAttributesRecord(js, nil, v1alpha2.SchemeGroupVersion.WithKind("JobSet"), "ns", "",
		v1alpha2.SchemeGroupVersion.WithResource("jobsets"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	err := plugin.Validate(ctx, attributes, nil)
	return said, err
}

// getClaim answers for one claim.
type getClaim func(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)

func claims(specs map[string]corev1.PersistentVolumeClaimSpec) getClaim {
	return func(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
		if spec, ok := specs[namespace+"/"+name]; ok {
			return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, nil
		}
		return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
	}
}

func TestValidate(t *testing.T) {
	retain := &jobset.VolumeRetentionPolicy{WhenDeleted: ptr.To(jobset.RetentionPolicyRetain)}
	remove := &jobset.VolumeRetentionPolicy{WhenDeleted: ptr.To(jobset.RetentionPolicyDelete)}
	other := liveSpec()
	other.AccessModes = nil
	cases := map[string]struct {
		get       getClaim
		retention *jobset.VolumeRetentionPolicy
		// wantErr are texts of the error in order, wantWarning is one of the only warning.
		wantErr     []string
		wantWarning string
	}{
		"no claim exists":                              {get: claims(nil), retention: remove},
		"a claim that fits exists, retained":           {get: claims(map[string]corev1.PersistentVolumeClaimSpec{"ns/a-js": liveSpec()}), retention: retain},
		"a claim of another namespace does not matter": {get: claims(map[string]corev1.PersistentVolumeClaimSpec{"other/a-js": other}), retention: remove},
		"9f: a claim differs": {
			get: claims(map[string]corev1.PersistentVolumeClaimSpec{"ns/b-js": other}), retention: retain,
			wantErr: []string{
				"spec.volumeClaimPolicies[0].template[1].spec: Invalid value",
				"must equal the spec of volume claim b-js, which exists: accessModes differ; change the template, rename it or delete the claim",
			},
		},
		"9g: the claim would be deleted": {
			get: claims(map[string]corev1.PersistentVolumeClaimSpec{"ns/a-js": liveSpec()}), retention: remove,
			wantErr: []string{
				"spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted: Invalid value: \"Delete\"",
				"must be Retain, because volume claim a-js exists and would be deleted with this JobSet",
			},
		},
		"9g: without a policy the claim would be deleted too": {
			get:     claims(map[string]corev1.PersistentVolumeClaimSpec{"ns/a-js": liveSpec()}),
			wantErr: []string{"spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted: Invalid value: \"Delete\""},
		},
		"9h: the main API cannot be asked": {
			get: func(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
				return nil, errors.New("connection refused")
			},
			retention:   remove,
			wantWarning: "spec.volumeClaimPolicies[0].template[0]: volume claim a-js could not be looked up in the cluster, so it and the claims after it were not checked: connection refused",
		},
		"9h: the main API does not answer in time": {
			get: func(ctx context.Context, _, _ string) (*corev1.PersistentVolumeClaim, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			retention:   remove,
			wantWarning: "context deadline exceeded",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said, err := validate(t, c.get, c.retention)
				checkRefusal(t, err, c.wantErr)
				if c.wantWarning == "" && len(said) > 0 {
					t.Errorf("warnings are %q", said)
				}
				if c.wantWarning != "" && (len(said) != 1 || !strings.Contains(said[0], c.wantWarning)) {
					t.Errorf("warnings are %q, not one with %q", said, c.wantWarning)
				}
			})
		})
	}
}

func checkRefusal(t *testing.T, err error, want []string) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details.Kind != "JobSet" {
		t.Errorf("error is %v, not an invalid JobSet", err)
		return
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is missing in: %v", text, err)
		}
	}
}

func TestOnlyNewJobSetsAreChecked(t *testing.T) {
	plugin := New()
	for operation, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: false, admission.Delete: false} {
		if got := plugin.Handles(operation); got != want {
			t.Errorf("Handles(%s) = %t", operation, got)
		}
	}
	if err := plugin.ValidateInitialization(); err == nil {
		t.Error("the plugin works without a client")
	}
}
