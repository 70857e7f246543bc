// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volumeclaims is the admission plugin that compares a new JobSet with the volume claims that exist in the main
// cluster.
//
// The controller creates the claim <template>-<jobset> for each template of spec.volumeClaimPolicies, and takes a claim
// that exists as its own. So a JobSet that comes upon a claim is accepted only when the claim is what the template asks
// for and when the claim is retained: otherwise deleting the JobSet would delete data that was there before it.
//
// When the main API cannot be asked, the write passes with a warning: the controller meets the conflict later and
// reports it, while refusing would tie every write to that API.
package volumeclaims

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
)

const (
	// PluginName is the name of the plugin for --enable-admission-plugins and --disable-admission-plugins.
	PluginName = "JobSetVolumeClaims"

	// lookupTimeout bounds all lookups of one request together.
	lookupTimeout = 2 * time.Second
	// maxGets is up to how many claims are read one by one. For more, those of the namespace are listed.
	maxGets = 10
	// pageSize and maxPages bound the list.
	pageSize, maxPages = 500, 10
)

// Register adds the plugin to the plugins that can be enabled.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin checks JobSets on creation.
type Plugin struct {
	*admission.Handler
	claims corev1client.PersistentVolumeClaimsGetter
}

var (
	_ admission.ValidationInterface          = &Plugin{}
	_ admission.InitializationValidator      = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
)

// New returns a plugin that lacks its client.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create)}
}

// SetExternalKubeClientSet sets the client of the main API. Claims are read live: a cache would hold every claim
// of the cluster in memory for a check that few JobSets need.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.claims = client.CoreV1() }

// ValidateInitialization says what is missing.
func (p *Plugin) ValidateInitialization() error {
	if p.claims == nil {
		return fmt.Errorf("%s lacks a client of the main API", PluginName)
	}
	return nil
}

// Validate refuses JobSets that would take over a volume claim of another owner.
func (p *Plugin) Validate(ctx context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	if attributes.GetResource().GroupResource() != jobset.Resource("jobsets") || attributes.GetSubresource() != "" {
		return nil
	}
	js, ok := attributes.GetObject().(*jobset.JobSet)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("object is a %T, not a JobSet", attributes.GetObject()))
	}
	if errs := p.check(ctx, js, attributes.GetNamespace()); len(errs) > 0 {
		return apierrors.NewInvalid(jobset.Kind("JobSet"), js.Name, errs)
	}
	return nil
}

func (p *Plugin) check(ctx context.Context, js *jobset.JobSet, namespace string) field.ErrorList {
	wanted := claimsOf(js)
	lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, looked, err := find(lookup, p.claims.PersistentVolumeClaims(namespace), wanted)
	if err != nil {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s: volume claim %s could not be looked up in the cluster, "+
			"so it and the claims after it were not checked: %v", wanted[looked].path, wanted[looked].name, err))
	}
	var errs field.ErrorList
	for _, w := range wanted[:looked] {
		if claim := found[w.name]; claim != nil {
			errs = append(errs, compare(w.policy, w.template, claim, w.policyPath, w.path)...)
		}
	}
	return errs
}

// wantedClaim is a claim that the controller would create for the JobSet.
type wantedClaim struct {
	name             string
	policy           *jobset.VolumeClaimPolicy
	template         *corev1.PersistentVolumeClaim
	policyPath, path *field.Path
}

func claimsOf(js *jobset.JobSet) []wantedClaim {
	var wanted []wantedClaim
	for i := range js.Spec.VolumeClaimPolicies {
		policy, path := &js.Spec.VolumeClaimPolicies[i], field.NewPath("spec", "volumeClaimPolicies").Index(i)
		for j := range policy.Templates {
			wanted = append(wanted, wantedClaim{
				name: policy.Templates[j].Name + "-" + js.Name, policy: policy, template: &policy.Templates[j],
				// Upstream's paths say "template" although the field is called "templates"; clients may match on them.
				policyPath: path, path: path.Child("template").Index(j),
			})
		}
	}
	return wanted
}
