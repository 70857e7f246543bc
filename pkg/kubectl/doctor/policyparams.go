// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// paramsLabel adds a ClusterRole to what the server may read for policies, as in artifacts/base/rbac/apiserver.yaml.
const paramsLabel = "jobset-apiserver.io/aggregate-to-policy-params=true"

// paramPolicy is an admission policy about our kinds that has parameters.
type paramPolicy struct {
	kind, name string
	params     admissionregistrationv1.ParamKind
	// ignored says that writes pass if the parameters are not known.
	ignored bool
}

// policyParams checks that the server may read the parameters of admission policies about our kinds. kube-apiserver may read everything, so
// that such a policy works for other kinds and refuses each write of our kinds.
func policyParams(ctx context.Context, p *inspection) finding {
	policies, err := p.paramPolicies(ctx)
	if err != nil {
		return unseen("admission policies", err)
	}
	status, account := OK, accountOf(p.servers, "jobset-apiserver")
	var messages, fixes []string
	for _, policy := range policies {
		resource, err := p.resourceOf(ctx, policy.params)
		if err != nil {
			return unseen(fmt.Sprintf("the resource of %s in %s", policy.params.Kind, policy.params.APIVersion), err)
		}
		lacks, err := p.cannotRead(ctx, account, resource)
		if err != nil {
			return unseen("what others may do (SubjectAccessReview)", err)
		}
		if len(lacks) == 0 {
			continue
		}
		effect, severity := "refuses each write of our kinds that it matches", Fail
		if policy.ignored {
			effect, severity = "is ignored for our kinds", Warn
		}
		status = worse(status, severity)
		messages = append(messages, fmt.Sprintf("%s %s %s: its parameters are %s, and %s may not %s them", policy.kind, policy.name, effect,
			resource, account, cli.Join(lacks, "or")))
		if fix := grant(resource); !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
	}
	if len(messages) == 0 {
		return good("the server may read the parameters of all admission policies about our kinds")
	}
	return finding{status: status, certain: true, message: strings.Join(messages, "; "), fix: strings.Join(fixes, "; ")}
}

// grant is a command that lets the server read a resource.
func grant(resource schema.GroupResource) string {
	if resource.Resource == "secrets" && resource.Group == "" {
		return "use ConfigMaps for the parameters   # the server must not read Secrets"
	}
	role := "jobset-policy-params-" + resource.Resource
	return fmt.Sprintf("kubectl create clusterrole %s --verb=get,list,watch --resource=%s && kubectl label clusterrole %s %s", role, resource,
		role, paramsLabel)
}

// paramPolicies returns the policies about our API groups that have parameters and a binding that names some.
func (p *inspection) paramPolicies(ctx context.Context) ([]paramPolicy, error) {
	api := p.Kube.AdmissionregistrationV1()
	validating, err := policiesOf(ctx, p, "ValidatingAdmissionPolicy",
		api.ValidatingAdmissionPolicyBindings(), api.ValidatingAdmissionPolicies())
	if err != nil {
		return nil, err
	}
	mutating, err := policiesOf(ctx, p, "MutatingAdmissionPolicy",
		api.MutatingAdmissionPolicyBindings(), api.MutatingAdmissionPolicies())
	if apierrors.IsNotFound(err) { // older clusters do not serve them
		return validating, nil
	}
	return append(validating, mutating...), err
}

// policiesOf returns the policies of one kind. Mutating policies and their bindings have the fields of validating ones that are read.
func policiesOf[B, P metav1.ListInterface](ctx context.Context, p *inspection, kind string, bindings lister[B],
	policies lister[P]) (found []paramPolicy, err error) {
	bound := map[string]bool{}
	err = eachAs(ctx, p, bindings, func(binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
		bound[binding.Spec.PolicyName] = bound[binding.Spec.PolicyName] || binding.Spec.ParamRef != nil
	})
	if err != nil {
		return nil, err
	}
	err = eachAs(ctx, p, policies, func(policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
		if spec := &policy.Spec; spec.ParamKind != nil && bound[policy.Name] && constrains(spec.MatchConstraints) {
			found = append(found, paramPolicy{kind, policy.Name, *spec.ParamKind, ignores(spec.FailurePolicy)})
		}
	})
	return found, err
}

// eachAs calls f with each object of a kind, as one of another kind that has the same fields.
func eachAs[L metav1.ListInterface, T any](ctx context.Context, p *inspection, all lister[L], f func(*T)) error {
	return p.pages(ctx, func(ctx context.Context, options metav1.ListOptions) (string, error) {
		list, err := all.List(ctx, options)
		if err != nil {
			return "", err
		}
		data, err := json.Marshal(list)
		if err != nil {
			return "", err
		}
		var same struct {
			Items []T `json:"items"`
		}
		if err := json.Unmarshal(data, &same); err != nil {
			return "", err
		}
		for i := range same.Items {
			f(&same.Items[i])
		}
		return list.GetContinue(), nil
	})
}

// constrains returns whether a policy is about one of our API groups.
func constrains(match *admissionregistrationv1.MatchResources) bool {
	if match == nil {
		return false
	}
	var rules []admissionregistrationv1.RuleWithOperations
	for _, rule := range match.ResourceRules {
		rules = append(rules, rule.RuleWithOperations)
	}
	_, concerns := concerned(rules)
	return concerns
}

func ignores(policy *admissionregistrationv1.FailurePolicyType) bool {
	return policy != nil && *policy == admissionregistrationv1.Ignore
}

// resourceOf returns the resource of a kind, as kube-apiserver serves it.
func (p *inspection) resourceOf(ctx context.Context, kind admissionregistrationv1.ParamKind) (schema.GroupResource, error) {
	version, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return schema.GroupResource{}, err
	}
	path := "/apis/" + kind.APIVersion
	if version.Group == "" {
		path = "/api/" + kind.APIVersion
	}
	a, err := p.get(ctx, path)
	if err == nil {
		err = a.failure()
	}
	if err != nil {
		return schema.GroupResource{}, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(a.body, &list); err != nil {
		return schema.GroupResource{}, err
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			return schema.GroupResource{Group: version.Group, Resource: r.Name}, nil
		}
	}
	return schema.GroupResource{}, fmt.Errorf("kube-apiserver does not serve it")
}

// cannotRead returns which of the verbs that informers need an account lacks.
func (p *inspection) cannotRead(ctx context.Context, account string, resource schema.GroupResource) (lacks []string, err error) {
	for _, verb := range []string{"get", "list", "watch"} {
		attributes := authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Resource: resource.Resource}
		allowed, err := p.allowed(ctx, account, attributes)
		if err != nil {
			return nil, err
		}
		if !allowed {
			lacks = append(lacks, verb)
		}
	}
	return lacks, nil
}
