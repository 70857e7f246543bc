// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

const (
	// oldestKubernetes is the oldest release of a cluster that is supported.
	oldestKubernetes = "1.34"
	// maxSkew is how far clocks may be apart. Certificates, tokens and leases tolerate more than that, but not much more.
	maxSkew = 10 * time.Second
)

// customResources is the resource of CustomResourceDefinitions.
var customResources = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// kubeAPIServer checks that kube-apiserver answers the user.
func kubeAPIServer(_ context.Context, p *inspection) finding {
	const look = "kubectl cluster-info"
	err := p.mainErr
	if err == nil {
		err = p.main.failure()
	}
	if err != nil && p.main.code != 0 && p.main.code < 500 {
		return finding{status: Warn, message: fmt.Sprintf("kube-apiserver answers, but not you: %v", err)}
	}
	if err != nil {
		return finding{status: Fail, message: fmt.Sprintf("kube-apiserver does not answer: %v", err), fix: look}
	}
	var info struct{ GitVersion string }
	if err := json.Unmarshal(p.main.body, &info); err != nil {
		return finding{status: Fail, message: fmt.Sprintf("what answers is no kube-apiserver: %v", err), fix: look}
	}
	running, err := utilversion.ParseGeneric(info.GitVersion)
	if err == nil && running.LessThan(utilversion.MustParseGeneric(oldestKubernetes)) {
		return finding{status: Warn, message: fmt.Sprintf("Kubernetes is %s, which is older than %s and not supported", info.GitVersion,
			oldestKubernetes)}
	}
	return good("Kubernetes %s answers in %d ms", info.GitVersion, p.took.Milliseconds())
}

// definitions checks whether a CustomResourceDefinition of another controller serves the same kinds.
func definitions(ctx context.Context, p *inspection) finding {
	for _, name := range []string{"jobsets.jobset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io"} {
		definition, err := p.Dynamic.Resource(customResources).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return unseen("CustomResourceDefinitions", err)
		}
		if index, served := servedVersion(definition); served {
			return p.leftover(name, index)
		}
	}
	return good("no CustomResourceDefinition serves the kinds of jobset-apiserver")
}

func (p *inspection) leftover(name string, version int) finding {
	f := finding{status: Warn, message: fmt.Sprintf("CustomResourceDefinition %s is left of another controller and still serves a version: "+
		"its objects are hidden behind the APIService of jobset-apiserver, "+
		"and appear in its place if that is deleted; docs/operations/take-over.md moves them", name)}
	f.fix = fmt.Sprintf(`kubectl patch customresourcedefinition %s --type=json `+
		`-p '[{"op":"replace","path":"/spec/versions/%d/served","value":false}]'`, name, version)
	if _, service := p.backend(); service == "" && p.serviceErr == nil {
		f.message = fmt.Sprintf("CustomResourceDefinition %s serves the kind in place of jobset-apiserver, which has no APIService for it; "+
			"docs/operations/take-over.md moves its objects", name)
		f.fix = applyServices
	}
	return f
}

// servedVersion returns the index of a version that a CustomResourceDefinition serves.
func servedVersion(definition *unstructured.Unstructured) (index int, found bool) {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for i, version := range versions {
		if fields, ok := version.(map[string]any); ok && fields["served"] == true {
			return i, true
		}
	}
	return 0, false
}

// flowSchemas checks that kube-apiserver gives the requests of both programs the priority that they need.
func flowSchemas(ctx context.Context, p *inspection) finding {
	levels := map[string]string{
		"jobset-apiserver-delegated": "exempt", "jobset-controller": "workload-high", "jobset-controller-leader-election": "leader-election",
	}
	var missing, changed []string
	for _, name := range []string{"jobset-apiserver-delegated", "jobset-controller", "jobset-controller-leader-election"} {
		flow, err := p.Kube.FlowcontrolV1().FlowSchemas().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return unseen("FlowSchemas", err)
		case flow.Spec.PriorityLevelConfiguration.Name != levels[name] || !p.selects(flow):
			changed = append(changed, name)
		}
	}
	const effect = "requests of the programs queue with those of all others, and under load both wait for each other"
	switch {
	case len(missing) > 0:
		return finding{status: Warn, message: fmt.Sprintf("there is no FlowSchema %s: %s", cli.Join(missing, "or"), effect), fix: applyRoles}
	case len(changed) > 0:
		return finding{status: Warn, message: fmt.Sprintf("FlowSchema %s has another priority level or other subjects than it needs: %s",
			cli.Join(changed, "and"), effect), fix: applyRoles}
	}
	return good("kube-apiserver has the FlowSchemas of both programs")
}

// selects returns whether a FlowSchema is about a service account in the namespace of the programs.
func (p *inspection) selects(flow *flowcontrolv1.FlowSchema) bool {
	for _, rule := range flow.Spec.Rules {
		for _, subject := range rule.Subjects {
			if subject.ServiceAccount != nil && subject.ServiceAccount.Namespace == p.namespace {
				return true
			}
		}
	}
	return false
}

// clocks compares the clocks of the user, of the server and of the controller with that of kube-apiserver. A comparison
// is as exact as the answer was fast.
func clocks(_ context.Context, p *inspection) finding {
	if p.main.date.IsZero() {
		return unknown("kube-apiserver does not say what time it is")
	}
	ahead := func(of time.Time, at time.Time, took time.Duration) time.Duration {
		there := p.main.date.Add(at.Sub(p.asked))
		if apart := of.Sub(there); apart > maxSkew+took+p.took || apart < -maxSkew-took-p.took {
			return apart
		}
		return 0
	}
	var wrong []string
	say := func(whose string, by time.Duration) {
		if by != 0 {
			word := map[bool]string{true: "ahead of", false: "behind"}[by > 0]
			wrong = append(wrong, fmt.Sprintf("the clock of %s is %s %s that of kube-apiserver", whose, by.Abs().Round(time.Second), word))
		}
	}
	say("this machine", ahead(p.asked, p.asked, 0))
	if p.health != nil {
		say("jobset-apiserver", ahead(p.health.Time.Time, p.healthAt, p.healthTook))
	}
	if p.lease != nil && p.lease.Spec.RenewTime != nil {
		if by := ahead(p.lease.Spec.RenewTime.Time, p.asked, readTimeout); by > 0 {
			say("the controller", by)
		}
	}
	if len(wrong) > 0 {
		return finding{status: Warn, message: strings.Join(wrong, "; ") + ": certificates, tokens and leases depend on clocks",
			fix: "timedatectl set-ntp true   # on that machine"}
	}
	return good("the clocks are at most %s apart", maxSkew)
}
