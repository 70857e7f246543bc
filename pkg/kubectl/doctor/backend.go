// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

// external returns whether the server is not in pods that the Service selects: it is somewhere else, or another controller or a user makes
// its endpoints.
func (p *inspection) external() bool {
	return p.service != nil && (p.service.Spec.Type == corev1.ServiceTypeExternalName || len(p.service.Spec.Selector) == 0)
}

// serviceExists checks that the APIServices name a Service that leads to our server.
func serviceExists(_ context.Context, p *inspection) finding {
	namespace, name := p.backend()
	if name == "" {
		return unknown("no APIService names a Service for JobSets")
	}
	jobsets := outage.Name(outage.Kinds()[0])
	switch {
	case apierrors.IsNotFound(p.backendErr):
		return finding{status: Fail, certain: true, fix: pointTo(jobsets, "jobset-system", serverName),
			message: fmt.Sprintf("APIService %s points to Service %s/%s, which does not exist", jobsets, namespace, name)}
	case p.backendErr != nil:
		return unseenHere(fmt.Sprintf("Service %s/%s", namespace, name), p.backendErr)
	case p.service.Spec.Type != corev1.ServiceTypeExternalName && p.service.Name != serverName && p.service.Labels[nameLabel] != serverName:
		return finding{status: Fail, certain: true, fix: pointTo(jobsets, "jobset-system", serverName),
			message: fmt.Sprintf("APIService %s points to Service %s/%s, which does not belong to jobset-apiserver: it lacks the label %s=%s",
				jobsets, namespace, name, nameLabel, serverName)}
	}
	// Only now is it known which of two different Services is the right one.
	if other := p.elsewhere(namespace + "/" + name); other != nil {
		return finding{status: Fail, certain: true, fix: pointTo(other.GetName(), namespace, name),
			message: fmt.Sprintf("APIService %s points to Service %s, but JobSets are served by Service %s/%s", other.GetName(), backend(other),
				namespace, name)}
	}
	return p.portsExist()
}

// portsExist checks that the Service has the port that each APIService names.
func (p *inspection) portsExist() finding {
	var wrong, messages []string
	right := int64(0)
	for _, service := range p.services {
		if service == nil || backend(service) == "" {
			continue
		}
		port, found, _ := unstructured.NestedInt64(service.Object, "spec", "service", "port")
		if !found {
			port = defaultPort
		}
		if slices.ContainsFunc(p.service.Spec.Ports, func(of corev1.ServicePort) bool { return int64(of.Port) == port }) {
			right = port
			continue
		}
		wrong = append(wrong, service.GetName())
		messages = append(messages, fmt.Sprintf("APIService %s points to port %d, which Service %s/%s does not have", service.GetName(), port,
			p.service.Namespace, p.service.Name))
	}
	if len(wrong) == 0 {
		return p.selected()
	}
	f := finding{status: Fail, certain: true, message: strings.Join(messages, "; "), fix: applyServices}
	if right != 0 { // the Service is right, since others point to a port that it has
		f.fix = pointToPort(wrong[0], p.service.Namespace, p.service.Name, right)
	}
	return f
}

// elsewhere is an APIService that names another Service; nil if none does.
func (p *inspection) elsewhere(service string) *unstructured.Unstructured {
	for _, other := range p.services {
		if other != nil && backend(other) != "" && backend(other) != service {
			return other
		}
	}
	return nil
}

// defaultPort is the port of a Service to which an APIService points that names none.
const defaultPort = 443

// pointTo is a command that makes an APIService point to a Service.
func pointTo(apiService, namespace, name string) string {
	return pointToPort(apiService, namespace, name, defaultPort)
}

func pointToPort(apiService, namespace, name string, port int64) string {
	return fmt.Sprintf(`kubectl patch apiservice %s --type=merge -p '{"spec":{"service":{"namespace":%q,"name":%q,"port":%d}}}'`, apiService,
		namespace, name, port)
}

// selected checks that the Service selects the pods of the server.
func (p *inspection) selected() finding {
	name := "Service " + p.service.Namespace + "/" + p.service.Name
	if p.external() {
		return good("the APIServices point to %s, whose endpoints are not chosen by labels", name)
	}
	selector := labels.SelectorFromSet(p.service.Spec.Selector)
	for i := range p.servers {
		if selector.Matches(labels.Set(p.servers[i].Labels)) {
			return good("the APIServices point to %s", name)
		}
	}
	if p.podsErr == nil && len(p.servers) > 0 {
		return finding{status: Fail, certain: true, fix: "kubectl apply -k artifacts/overlays/embedded   # or the overlay or chart of this " +
			"installation",
			message: fmt.Sprintf("the selector of %s (%s) does not match pod %s of jobset-apiserver, whose labels are %s", name, selector,
				p.servers[0].Name, labels.Set(p.servers[0].Labels))}
	}
	return good("the APIServices point to %s", name)
}

// endpoints checks that the Service has an endpoint that is ready.
func endpoints(_ context.Context, p *inspection) finding {
	switch {
	case p.service == nil:
		return unknown("there is no Service whose endpoints could be judged")
	case p.service.Spec.Type == corev1.ServiceTypeExternalName:
		return good("the Service is another name of %s", p.service.Spec.ExternalName)
	case p.slicesErr != nil:
		return unseenHere("EndpointSlices", p.slicesErr)
	}
	var ready, waiting []string
	for i := range p.slices {
		for _, endpoint := range p.slices[i].Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) && len(p.slices[i].Ports) > 0 {
				ready = append(ready, endpoint.Addresses...)
			} else {
				waiting = append(waiting, endpoint.Addresses...)
			}
		}
	}
	name := p.service.Namespace + "/" + p.service.Name
	look := fmt.Sprintf("kubectl -n %s get endpointslices -l kubernetes.io/service-name=%s -o yaml", p.service.Namespace, p.service.Name)
	switch {
	case len(ready) > 0:
		return good("Service %s leads to %s", name, shorten(ready))
	case len(waiting) > 0:
		return finding{status: Fail, message: fmt.Sprintf("no endpoint of Service %s is ready: %s", name, shorten(waiting)), fix: look}
	}
	return finding{status: Fail, fix: look,
		message: fmt.Sprintf("Service %s has no endpoints, although it selects pods: the names of its target ports are not those of the "+
			"containers, or kube-controller-manager does not run", name)}
}

// shorten joins the first few of many words.
func shorten(words []string) string {
	shown := strings.Join(words[:min(len(words), maxNamed)], ", ")
	if more := len(words) - maxNamed; more > 0 {
		shown += fmt.Sprintf(" and %s more", cli.Number(more))
	}
	return shown
}
