// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Claims for devices (dynamic resource allocation). The scheduler does not look at a pod before all of its ResourceClaims exist, and no
// condition of the pod says so. A ResourceClaim that a pod names has not even an event.

// readDeviceClaims reads the claims and the templates of claims that pods without a node name.
func (l *loader) readDeviceClaims(ctx context.Context) {
	var claims, templates []string
	for _, pod := range l.e.Pods {
		if pod.Spec.NodeName != "" {
			continue
		}
		for i := range pod.Spec.ResourceClaims {
			claim := &pod.Spec.ResourceClaims[i]
			if claim.ResourceClaimName != nil {
				claims = append(claims, *claim.ResourceClaimName)
			}
			if claim.ResourceClaimTemplateName != nil && !claimMade(pod, claim.Name) {
				templates = append(templates, *claim.ResourceClaimTemplateName)
			}
		}
	}
	if len(claims) == 0 && len(templates) == 0 {
		return
	}
	l.e.DeviceClaims, l.e.DeviceTemplates = map[string]*resourcev1.ResourceClaim{}, map[string]*resourcev1.ResourceClaimTemplate{}
	byName(ctx, l, "resourceclaims", claims, l.e.DeviceClaims, func(ctx context.Context, name string) (*resourcev1.ResourceClaim, error) {
		return l.Kube.ResourceV1().ResourceClaims(l.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	byName(ctx, l, "resourceclaimtemplates", templates, l.e.DeviceTemplates,
		func(ctx context.Context, name string) (*resourcev1.ResourceClaimTemplate, error) {
			return l.Kube.ResourceV1().ResourceClaimTemplates(l.Namespace).Get(ctx, name, metav1.GetOptions{})
		})
}

// claimMade returns whether kube-controller-manager has made the claim of a pod from its template, or has found that none is needed.
func claimMade(pod *corev1.Pod, name string) bool {
	for i := range pod.Status.ResourceClaimStatuses {
		if pod.Status.ResourceClaimStatuses[i].Name == name {
			return true
		}
	}
	return false
}

// lackingClaim is the claim for devices that keeps the scheduler from looking at a pod.
type lackingClaim struct {
	// kind and name are of the object that is missing, and field is what names it in the pod.
	kind, name, field string
	// template is set if the template exists and only the claim that kube-controller-manager makes of it is missing.
	template bool
}

// claimLacking returns the first claim for devices that a pod lacks; nil if it lacks none, or if that is not known.
func (d *diagnosis) claimLacking(pod *corev1.Pod) *lackingClaim {
	for i := range pod.Spec.ResourceClaims {
		claim := &pod.Spec.ResourceClaims[i]
		if name := ptr.Deref(claim.ResourceClaimName, ""); name != "" {
			if found, read := d.DeviceClaims[name]; read && found == nil {
				return &lackingClaim{kind: "ResourceClaim", name: name, field: "resourceClaimName"}
			}
		}
		name := ptr.Deref(claim.ResourceClaimTemplateName, "")
		if name == "" || claimMade(pod, claim.Name) {
			continue
		}
		switch found, read := d.DeviceTemplates[name]; {
		case read && found == nil:
			return &lackingClaim{kind: "ResourceClaimTemplate", name: name, field: "resourceClaimTemplateName"}
		case read && d.Now.Sub(pod.CreationTimestamp.Time) >= schedulerGrace:
			return &lackingClaim{kind: "ResourceClaim", name: name, template: true}
		}
	}
	return nil
}

// deviceClaimMissing says which object pods wait for, and who must create it.
func (d *diagnosis) deviceClaimMissing(f *Finding, pod *corev1.Pod, n int) {
	lacks := d.claimLacking(pod)
	waits := podsDo(n, "waits", "wait")
	if !lacks.template {
		f.Summary = fmt.Sprintf("%s for the %s %s, which does not exist in namespace %s: create it, or correct %s in the set", waits,
			lacks.kind, lacks.name, d.Namespace, lacks.field)
		f.Evidence = append(f.Evidence, Fact{Object: object(lacks.kind, lacks.name), Text: "does not exist"})
		f.Commands = append(f.Commands, d.kubectl("get resourceclaimtemplates,resourceclaims"))
		return
	}
	why := "it does not run, or its controller for ResourceClaims is off"
	if events := d.about(pod.UID, "FailedResourceClaimCreation"); len(events) > 0 {
		why = oneLine(events[0].Message)
		f.Evidence = append(f.Evidence, eventFact(&events[0]))
	}
	f.Summary = fmt.Sprintf("%s for ResourceClaims of the template %s, which kube-controller-manager creates and has not created: %s", waits,
		lacks.name, why)
	f.Commands = append(f.Commands, d.kubectl("get resourceclaims"), "kubectl -n kube-system get pods,leases")
}
