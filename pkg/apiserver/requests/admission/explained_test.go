// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	policy "k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
)

// unsynced is what the library says about parameters that were never listed.
func unsynced(t *testing.T, kind *admissionregistrationv1.ParamKind) error {
	t.Helper()
	informer, err := informers.NewSharedInformerFactory(fake.NewClientset(), 0).ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = policy.CollectParams(kind, informer, meta.RESTScopeRoot, &admissionregistrationv1.ParamRef{Name: "limits"}, "team", nil, nil)
	if err == nil {
		t.Fatal("parameters that were never listed are known")
	}
	return err
}

// refusing is a plugin that answers with an error.
type refusing struct {
	admission.Interface
	err error
}

func (r refusing) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return r.err
}

func (r refusing) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return r.err
}

// TestRefusalNamesThePermission goes from the words of the library to the refusal that a user reads. The library waits a second for the
// parameters.
func TestRefusalNamesThePermission(t *testing.T) {
	forbid := func(message string) error {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "jobsets"}, "train", errors.New(message))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: message}}
		return err
	}
	unknown := unsynced(t, &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"})
	other := errors.New(strings.NewReplacer("ConfigMap", "Limit", "APIVersion:v1", "APIVersion:example.com/v1").Replace(unknown.Error()))
	decorators := NewOptions(apigroups.All().Plugins()).Decorators
	for name, tc := range map[string]struct {
		plugin string
		err    error
		want   string
	}{
		"a validating policy": {"ValidatingAdmissionPolicy", forbid("failed to configure binding: " + unknown.Error()), "the parameters of the policy (ConfigMap of the core group)"},
		"a mutating policy":   {"MutatingAdmissionPolicy", forbid(unknown.Error()), "the parameters of the policy (ConfigMap of the core group)"},
		"of another group":    {"ValidatingAdmissionPolicy", forbid(other.Error()), "the parameters of the policy (Limit of example.com)"},
		"another refusal":     {"ValidatingAdmissionPolicy", forbid("too many"), ""},
		"another error":       {"ValidatingAdmissionPolicy", errors.New("broken"), ""},
		"another plugin":      {"ResourceQuota", forbid(unknown.Error()), ""},
		"a counted quota":     {"ResourceQuota", forbid("exceeded quota: tight"), ""},
		"no error":            {"ValidatingAdmissionPolicy", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := decorators.Decorate(refusing{admission.NewHandler(admission.Create), tc.err}, tc.plugin)
			attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
			for verb, got := range map[string]error{
				"Admit":    plugin.(admission.MutationInterface).Admit(t.Context(), attributes, nil),
				"Validate": plugin.(admission.ValidationInterface).Validate(t.Context(), attributes, nil),
			} {
				if tc.want == "" {
					if got != tc.err {
						t.Errorf("%s changes the error to %v", verb, got)
					}
					continue
				}
				var status *apierrors.StatusError
				if !errors.As(got, &status) || !apierrors.IsForbidden(got) {
					t.Fatalf("%s: %v", verb, got)
				}
				for _, text := range []string{status.ErrStatus.Message, status.ErrStatus.Details.Causes[0].Message} {
					if !strings.Contains(text, "jobset-apiserver needs the permission to get, list and watch "+tc.want) || strings.Count(text, "needs the permission") != 1 {
						t.Errorf("%s: %s", verb, text)
					}
				}
			}
		})
	}
}

// TestRefusalSaysWhenAQuotaIsCounted: a quota that is made in the first seconds after an installation refuses for minutes.
func TestRefusalSaysWhenAQuotaIsCounted(t *testing.T) {
	message := "status unknown for quota: tight, resources: count/jobsets.jobset.x-k8s.io"
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "jobsets"}, "train", errors.New(message))
	plugin := NewOptions(apigroups.All().Plugins()).Decorators.Decorate(refusing{admission.NewHandler(admission.Create), refusal}, "ResourceQuota")
	attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, "", admission.Create, nil, false, nil)
	err := plugin.(admission.ValidationInterface).Validate(t.Context(), attributes, nil)
	const want = `jobsets "train" is forbidden: status unknown for quota: tight, resources: count/jobsets.jobset.x-k8s.io: kube-controller-manager has not counted them yet; ` +
		"it counts a quota that was created before it knew the kind within 5 minutes, and at once if you delete the quota and create it again"
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
