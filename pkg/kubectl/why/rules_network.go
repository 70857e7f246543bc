// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
)

// What keeps the pods from finding each other by name.

// serviceTrouble checks the Service that gives the pods their names. The set uses any Service of this name, whatever its owner.
func serviceTrouble(d *diagnosis) []Finding {
	name := subdomain(d.JobSet)
	service, read := d.Services[name]
	if !read {
		return nil
	}
	example := d.hostname()
	if service == nil {
		if len(d.current) == 0 {
			return nil // the Service comes before the Jobs: what refuses it is found there
		}
		return []Finding{{
			Cause: ServiceMissing, Summary: fmt.Sprintf("the Service %s is gone, so the pods cannot find each other by name", name),
			Evidence: []Fact{{Object: object("service", name), Text: "does not exist; " + example + " has no address"}},
			Commands: []string{d.kubectl("events --for jobset/%s --types=Warning", d.Name)},
		}}
	}
	if owner := metav1.GetControllerOf(service); owner != nil && owner.UID == d.JobSet.UID {
		return nil
	}
	wrong := d.wrongWith(service)
	if len(wrong) == 0 {
		return nil // a user made it for this very set
	}
	owner := "has no owner"
	if refs := service.OwnerReferences; len(refs) > 0 {
		owner = fmt.Sprintf("belongs to %s %s", refs[0].Kind, refs[0].Name)
	}
	return []Finding{{
		Cause: ServiceForeign,
		Summary: fmt.Sprintf("a Service %s exists that does not belong to the set, so the pods cannot find each other: %s", name,
			strings.Join(wrong, ", and ")),
		Evidence: []Fact{
			{Object: object("service", name), Text: fmt.Sprintf("%s; %s", owner, strings.Join(wrong, ", and ")),
				Time: at(service.CreationTimestamp.Time)},
			{Object: d.set(), Text: "its pods expect names like " + example},
		},
		Commands: []string{d.kubectl("describe service %s", name),
			d.kubectl("delete service %s  # if it is not needed: the set then makes its own", name)},
	}}
}

// wrongWith says why a Service does not give the pods of the set their names.
func (d *diagnosis) wrongWith(service *corev1.Service) []string {
	pods := labels.Set{d.kind().label: d.Name}
	if len(d.Pods) > 0 {
		pods = d.Pods[0].Labels
	}
	var wrong []string
	if len(service.Spec.Selector) == 0 || !labels.SelectorFromSet(service.Spec.Selector).Matches(pods) {
		wrong = append(wrong, fmt.Sprintf("its selector {%s} does not select the pods", labels.FormatLabels(service.Spec.Selector)))
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		wrong = append(wrong, "it is not headless")
	}
	return wrong
}

// hostname is the name by which the first pod of the set is found.
func (d *diagnosis) hostname() string {
	rj := "replicatedjob"
	if len(d.JobSet.Spec.ReplicatedJobs) > 0 {
		rj = d.JobSet.Spec.ReplicatedJobs[0].Name
	}
	name := subdomain(d.JobSet)
	if name == "" {
		name = d.Name
	}
	return fmt.Sprintf("%s-%s-0-0.%s.%s.svc", d.Name, rj, name, d.Namespace)
}

// hostnamesDisabled looks for users of names that the set does not give.
func hostnamesDisabled(d *diagnosis) []Finding {
	js := d.JobSet
	if js.Spec.Network == nil || ptr.Deref(js.Spec.Network.EnableDNSHostnames, true) {
		return nil
	}
	user := ""
	if c := js.Spec.Coordinator; c != nil {
		user = fmt.Sprintf("spec.coordinator names pod %d of the job %s", c.PodIndex, helper.JobName(js.Name, c.ReplicatedJob, c.JobIndex))
	} else {
		user = d.namesInTemplates()
	}
	if user == "" {
		return nil
	}
	return []Finding{{
		Cause: CoordinatorWithoutHostname,
		Summary: fmt.Sprintf("DNS hostnames are disabled (spec.network.enableDNSHostnames is false), but %s, whose name then resolves to nothing",
			user),
		Evidence: []Fact{
			{Object: d.set(), Text: "spec.network.enableDNSHostnames is false"},
			{Object: d.set(), Text: user},
		},
		Commands: []string{d.kubectl("get jobset %s -o yaml > %s.yaml  # set spec.network.enableDNSHostnames to true, delete the set and "+
			"recreate it", js.Name, js.Name)},
	}}
}

// namesInTemplates looks for hostnames of the set in what its containers are given.
func (d *diagnosis) namesInTemplates() string {
	for i := range d.JobSet.Spec.ReplicatedJobs {
		spec := &d.JobSet.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		if spec.Subdomain != "" {
			continue
		}
		for j := range d.JobSet.Spec.ReplicatedJobs {
			host := fmt.Sprintf("%s-%s-0-0.", d.Name, d.JobSet.Spec.ReplicatedJobs[j].Name)
			for k := range spec.Containers {
				if c := &spec.Containers[k]; mentions(c, host) {
					return fmt.Sprintf("the container %s of the replicatedJob %s is given the name %s%s", c.Name, d.JobSet.Spec.ReplicatedJobs[i].Name,
						host, d.Name)
				}
			}
		}
	}
	return ""
}

func mentions(c *corev1.Container, text string) bool {
	words := append(append([]string{}, c.Command...), c.Args...)
	for i := range c.Env {
		words = append(words, c.Env[i].Value)
	}
	return strings.Contains(strings.Join(words, " "), text)
}
