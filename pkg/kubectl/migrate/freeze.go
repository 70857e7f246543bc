// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// freezeName is the name of the objects that refuse writes: a ValidatingAdmissionPolicy, its binding, its parameters, and
// a Job that never has a pod. The Job owns the parameters and ends at the deadline. Then it is deleted, the garbage
// collector deletes the parameters, and without these the policy refuses nothing.
const freezeName = "jobset-apiserver-migration-freeze"

// passing are the users whose writes the freeze lets pass: objects may be deleted meanwhile, and lose finalizers.
var passing = []string{
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:namespace-controller",
}

// stage describes what a migration is doing while writes are refused. The refusal includes it, so that a probe can tell
// which parameters are in effect.
type stage string

const (
	// copying lets those pass who delete objects and remove finalizers.
	copying stage = "objects are being copied"
	// switching refuses them as well, for the moment in which another server takes the group.
	switching stage = "another server is taking over the objects"
)

// freeze refuses writes of some resources.
type freeze struct {
	subjects []subject
	// id names the migration, since is when it began to refuse writes, and deadline when it ends whatever happens.
	id              string
	since, deadline time.Time
	stage           stage
}

func (f *freeze) policy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	all, exact := admissionregistrationv1.AllScopes, admissionregistrationv1.Exact
	var rules []admissionregistrationv1.NamedRuleWithOperations
	for _, s := range f.subjects {
		rules = append(rules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{
				admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
			},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{s.resource.Group}, APIVersions: []string{s.resource.Version}, Resources: []string{"*/*"}, Scope: &all,
			},
		}})
	}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: freezeName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			ParamKind:     &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ResourceQuota"},
			// The version through which a migration writes objects back is not matched.
			MatchConstraints: &admissionregistrationv1.MatchResources{MatchPolicy: &exact, ResourceRules: rules},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "request.userInfo.username in " + parameter("passing") + ".split(',')",
				MessageExpression: "'migration ' + " + parameter("id") + " + ' has refused writes since ' + " + parameter("since") +
					" + ' and does so until ' + " + parameter("deadline") + " + ' at the latest: ' + " + parameter("stage") + " + '; try again later'",
			}},
		},
	}
}

func (f *freeze) binding() *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: freezeName},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        freezeName,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			ParamRef: &admissionregistrationv1.ParamRef{
				Name: freezeName, Namespace: systemNamespace, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction),
			},
		},
	}
}

// timer is the Job. Its parallelism is 0, so that no pod is ever created. It ends at the deadline.
func (f *freeze) timer(now time.Time) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: freezeName, Namespace: systemNamespace},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](0), ActiveDeadlineSeconds: ptr.To(max(1, int64(f.deadline.Sub(now).Seconds()))),
			TTLSecondsAfterFinished: ptr.To[int32](0), Template: corev1.PodTemplateSpec{Spec: neverStarted()},
		},
	}
}

// neverStarted is a pod as the Pod Security Standard "restricted" asks for, which a namespace may enforce or warn about.
func neverStarted() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{Name: "never-started", Image: "none", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
}

// parameters are a ResourceQuota that limits nothing: jobset-apiserver may read quotas, and need not be allowed to read every
// ConfigMap of the cluster.
func (f *freeze) parameters(owner *batchv1.Job) *corev1.ResourceQuota {
	users := passing
	if f.stage == switching {
		users = []string{"-"}
	}
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Name: freezeName, Namespace: systemNamespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: owner.Name, UID: owner.UID}},
			Annotations: map[string]string{
				parameterPrefix + "id": f.id, parameterPrefix + "since": f.since.UTC().Format(time.RFC3339),
				parameterPrefix + "deadline": f.deadline.UTC().Format(time.RFC3339), parameterPrefix + "passing": strings.Join(users, ","),
				parameterPrefix + "stage": string(f.stage),
			},
		},
	}
}

// parameterPrefix begins the annotations that are the parameters of the policy.
const parameterPrefix = "migration.jobset-apiserver.io/"

// parameter is a parameter in the language of policies.
func parameter(name string) string {
	return "params.metadata.annotations['" + parameterPrefix + name + "']"
}

// lift ends the freeze. It may be repeated.
func lift(ctx context.Context, client kubernetes.Interface) error {
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	for what, remove := range map[string]func() error{
		"policy binding": func() error {
			return client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, freezeName, background)
		},
		"policy": func() error {
			return client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, freezeName, background)
		},
		"parameters": func() error {
			return client.CoreV1().ResourceQuotas(systemNamespace).Delete(ctx, freezeName, background)
		},
		"timer": func() error { return client.BatchV1().Jobs(systemNamespace).Delete(ctx, freezeName, background) },
	} {
		if err := remove(); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("ending the freeze: deleting its %s: %w", what, err)
		}
	}
	return nil
}
