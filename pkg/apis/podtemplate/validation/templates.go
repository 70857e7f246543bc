// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateJobTemplate checks the schema of an embedded Job template.
func ValidateJobTemplate(template *batchv1.JobTemplateSpec, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(*template, batchv1.JobTemplateSpec{}) {
		return field.ErrorList{field.Required(path, "must be set: it describes the Jobs, with their containers in spec.template.spec.containers")}
	}
	c := &checker{}
	spec, specPath := &template.Spec, path.Child("spec")
	c.labelSelector(spec.Selector, specPath.Child("selector"))
	c.podFailurePolicy(spec.PodFailurePolicy, specPath.Child("podFailurePolicy"))
	if spec.SuccessPolicy != nil {
		c.present(specPath.Child("successPolicy", "rules"), spec.SuccessPolicy.Rules != nil)
	}
	return append(c.errs, ValidatePodTemplate(&spec.Template, specPath.Child("template"))...)
}

// ValidatePodTemplate checks the schema of an embedded pod template.
func ValidatePodTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(*template, corev1.PodTemplateSpec{}) {
		return field.ErrorList{field.Required(path, "must be set: it describes the pods, with their containers in spec.containers")}
	}
	c := &checker{}
	c.podSpec(&template.Spec, path.Child("spec"))
	return c.errs
}

func (c *checker) podFailurePolicy(policy *batchv1.PodFailurePolicy, path *field.Path) {
	if policy == nil {
		return
	}
	c.present(path.Child("rules"), policy.Rules != nil)
	for i := range policy.Rules {
		rule, rulePath := &policy.Rules[i], path.Child("rules").Index(i)
		c.text(rulePath.Child("action"), string(rule.Action))
		if codes := rule.OnExitCodes; codes != nil {
			c.text(rulePath.Child("onExitCodes", "operator"), string(codes.Operator))
			c.present(rulePath.Child("onExitCodes", "values"), codes.Values != nil)
		}
		for j := range rule.OnPodConditions {
			c.text(rulePath.Child("onPodConditions").Index(j).Child("type"), string(rule.OnPodConditions[j].Type))
		}
	}
}

func (c *checker) podSpec(spec *corev1.PodSpec, path *field.Path) {
	if spec.Containers == nil {
		c.errs = append(c.errs, field.Required(path.Child("containers"), "must list the containers of the pod"))
	}
	c.containers(spec.InitContainers, path.Child("initContainers"))
	c.containers(spec.Containers, path.Child("containers"))
	c.ephemeralContainers(spec.EphemeralContainers, path.Child("ephemeralContainers"))
	c.volumes(spec.Volumes, path.Child("volumes"))
	c.podSecurityContext(spec.SecurityContext, path.Child("securityContext"))
	c.affinity(spec.Affinity, path.Child("affinity"))
	c.spreadConstraints(spec.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))
	if spec.Resources != nil {
		c.resourceClaims(spec.Resources.Claims, path.Child("resources", "claims"))
	}
	c.podLists(spec, path)
	if spec.OS != nil {
		c.text(path.Child("os", "name"), string(spec.OS.Name))
	}
}

// podLists checks the lists of a pod whose items have a key and little else.
func (c *checker) podLists(spec *corev1.PodSpec, path *field.Path) {
	unique(c, path.Child("imagePullSecrets"), spec.ImagePullSecrets, func(s *corev1.LocalObjectReference) string { return s.Name })
	for i := range spec.HostAliases {
		c.text(path.Child("hostAliases").Index(i).Child("ip"), spec.HostAliases[i].IP)
	}
	unique(c, path.Child("hostAliases"), spec.HostAliases, func(a *corev1.HostAlias) string { return a.IP })
	for i := range spec.ReadinessGates {
		c.text(path.Child("readinessGates").Index(i).Child("conditionType"), string(spec.ReadinessGates[i].ConditionType))
	}
	for i := range spec.SchedulingGates {
		c.text(path.Child("schedulingGates").Index(i).Child("name"), spec.SchedulingGates[i].Name)
	}
	unique(c, path.Child("schedulingGates"), spec.SchedulingGates, func(g *corev1.PodSchedulingGate) string { return g.Name })
	for i := range spec.ResourceClaims {
		c.text(path.Child("resourceClaims").Index(i).Child("name"), spec.ResourceClaims[i].Name)
	}
	unique(c, path.Child("resourceClaims"), spec.ResourceClaims, func(r *corev1.PodResourceClaim) string { return r.Name })
}

func (c *checker) podSecurityContext(sc *corev1.PodSecurityContext, path *field.Path) {
	if sc == nil {
		return
	}
	c.profiles(sc.SeccompProfile, sc.AppArmorProfile, path)
	for i := range sc.Sysctls {
		c.text(path.Child("sysctls").Index(i).Child("name"), sc.Sysctls[i].Name)
	}
}

func (c *checker) profiles(seccomp *corev1.SeccompProfile, appArmor *corev1.AppArmorProfile, path *field.Path) {
	if seccomp != nil {
		c.text(path.Child("seccompProfile", "type"), string(seccomp.Type))
	}
	if appArmor != nil {
		c.text(path.Child("appArmorProfile", "type"), string(appArmor.Type))
	}
}

func (c *checker) labelSelector(selector *metav1.LabelSelector, path *field.Path) {
	if selector == nil {
		return
	}
	for i := range selector.MatchExpressions {
		expression, p := &selector.MatchExpressions[i], path.Child("matchExpressions").Index(i)
		c.text(p.Child("key"), expression.Key)
		c.text(p.Child("operator"), string(expression.Operator))
	}
}
