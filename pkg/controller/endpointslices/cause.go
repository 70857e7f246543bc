// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/permission"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/plan"
)

// Reasons why the cluster writes the addresses of a set that asks us to.
const (
	// ReasonServiceShared means that several JobSets use the Service.
	ReasonServiceShared = "ServiceShared"
	// ReasonServiceNotOwned means that the set does not own the Service.
	ReasonServiceNotOwned = "ServiceNotOwned"
	// ReasonSelectorChanged means that the Service selects other pods than those of the set.
	ReasonSelectorChanged = "SelectorChanged"
	// ReasonNamedTargetPort means that a port of the Service may have another number in each pod.
	ReasonNamedTargetPort = "NamedTargetPort"
	// ReasonNotPermitted means that the controller may not watch EndpointSlices.
	ReasonNotPermitted = "NotPermitted"
	// ReasonSlicesRefused means that the API refuses our slices, or that of the canary record.
	ReasonSlicesRefused = "SlicesRefused"
	// ReasonServiceRefused means that the API refuses the change of the selector of the Service, or the Service of the canary record.
	ReasonServiceRefused = "ServiceRefused"
	// ReasonCanaryNotResolved means that the cluster does not resolve names from our slices.
	ReasonCanaryNotResolved = "CanaryNotResolved"
	// ReasonControllerOff means that the program runs without this controller.
	ReasonControllerOff = "ControllerOff"
)

// cause is why the cluster writes the addresses of a set that asks us to. Its message says what is in the way, and what to do. The zero
// cause is none.
type cause = plan.Refusal

func newCause(reason, message string) cause { return cause{Reason: reason, Message: message} }

func serviceShared(service string) cause {
	return newCause(ReasonServiceShared, fmt.Sprintf("other JobSets use the Service %s too; give each JobSet a subdomain of its own in "+
		"spec.network", service))
}

func serviceNotOwned(service string) cause {
	return newCause(ReasonServiceNotOwned, fmt.Sprintf("the JobSet is not the controller of the Service %s; delete the Service, and the "+
		"JobSet creates its own", service))
}

func selectorChanged(service string) cause {
	return newCause(ReasonSelectorChanged, fmt.Sprintf("the selector of the Service %s was changed; delete the Service, and the JobSet "+
		"creates it again", service))
}

func namedTargetPort(service, port string) cause {
	return newCause(ReasonNamedTargetPort, fmt.Sprintf("the target of the port %s of the Service %s is a name; use a number", port, service))
}

func notPermitted() cause {
	return newCause(ReasonNotPermitted, "the controller has no permission to watch EndpointSlices; restore the rule for endpointslices in "+
		"the ClusterRole jobset-controller-manager")
}

func slicesRefused(err error) cause {
	if children.IsUndone(err) {
		return newCause(ReasonSlicesRefused, "another party deletes or changes EndpointSlices of the controller; keep them, or annotate the "+
			"JobSet with "+jobsetv1alpha2.ServiceEndpointsKey+"="+jobsetv1alpha2.ServiceEndpointsCluster+": "+
			children.RefusalOf(err).Message)
	}
	if permission.Missing(err) {
		return newCause(ReasonSlicesRefused, "the controller has no permission to write EndpointSlices; apply "+
			"artifacts/base/rbac/endpoints.yaml, or annotate the JobSet with "+jobsetv1alpha2.ServiceEndpointsKey+"="+
			jobsetv1alpha2.ServiceEndpointsCluster+": "+children.RefusalOf(err).Message)
	}
	return newCause(ReasonSlicesRefused, "EndpointSlices of the controller are refused; allow them, or annotate the JobSet with "+
		jobsetv1alpha2.ServiceEndpointsKey+"="+jobsetv1alpha2.ServiceEndpointsCluster+": "+children.RefusalOf(err).Message)
}

func serviceRefused(service string, err error) cause {
	if children.IsUndone(err) {
		return newCause(ReasonServiceRefused, fmt.Sprintf("another party changes the selector of the Service %s; leave it to "+
			"jobset-controller: %s", service,
			children.RefusalOf(err).Message))
	}
	return newCause(ReasonServiceRefused, fmt.Sprintf("the change of the selector of the Service %s is refused; allow jobset-controller to "+
		"patch it: %s", service,
		children.RefusalOf(err).Message))
}

func canaryNotResolved(reason string) cause {
	return newCause(ReasonCanaryNotResolved, reason+"; use a DNS server that reads EndpointSlices, or --service-endpoints-canary=false if "+
		"only the controller cannot look up names")
}

func canaryRefused(record *recordError) cause {
	return newCause(record.reason, fmt.Sprintf("the %s of the canary record is refused; allow jobset-controller to write it, or set "+
		"--service-endpoints-canary=false: %s", record.object, children.RefusalOf(record.err).Message))
}

func controllerOff() cause {
	return newCause(ReasonControllerOff, "the controller "+Name+" is switched off in --controllers of jobset-controller")
}

// cause returns why we do not write the addresses of a Service; none if we may.
func (s *set) cause(svc *corev1.Service) cause {
	own := len(svc.Spec.Selector) == 1
	if switched(svc) {
		own = len(svc.Spec.Selector) == 2
	}
	switch {
	case !metav1.IsControlledBy(svc, s.GetObjectMeta()):
		return serviceNotOwned(svc.Name)
	case !own || svc.Spec.Selector[jobsetv1alpha2.JobSetNameKey] != s.name:
		return selectorChanged(svc.Name)
	}
	for i := range svc.Spec.Ports {
		if svc.Spec.Ports[i].TargetPort.Type != intstr.Int {
			return namedTargetPort(svc.Name, svc.Spec.Ports[i].Name)
		}
	}
	return cause{}
}

// outcome is what became of the wish of a set.
type outcome struct {
	set types.UID
	cause
}

// outcomeOf returns what became of the wish of a set, and whether that is known.
func (m *memory) outcomeOf(key cache.ObjectName, set types.UID) (cause, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, known := m.outcomes[key]
	return o.cause, known && o.set == set
}

// became notes what became of the wish of a set, and returns whether that is news. Other words for the same reason are
// not: answers of the API have random names.
func (m *memory) became(key cache.ObjectName, is outcome) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.outcomes[key]
	if known && was.set == is.set && was.Reason == is.Reason {
		return false
	}
	m.outcomes[key] = is
	return true
}

// drop forgets what became of the wish of a set.
func (m *memory) drop(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.outcomes, key)
}

// report notes what became of the wish of a set, and sends an event if it is refused. While a Service is on its way
// from or to the cluster, nothing is noted. A set in the mode auto has no wish, and either writer is right.
func (c *Syncer) report(obs *observed) {
	if obs.set == nil {
		return
	}
	wishes := c.modeOf(obs.set) != jobsetv1alpha2.ServiceEndpointsAuto
	c.reportDenial(obs, wishes)
	if !wishes {
		c.memory.drop(obs.key)
		return
	}
	taken := obs.service != nil && switched(obs.service)
	refused := obs.cause.Reason != ""
	if refused == taken || !c.memory.became(obs.key, outcome{obs.set.uid, obs.cause}) {
		return
	}
	if refused {
		c.warn(obs, "The controllers of the cluster write the addresses of the Service: "+obs.cause.Message)
	}
	c.Handle.notify(obs.key)
}

// reportDenial sends an event about what the API refuses, if the condition does not say it: it stays as it is while a
// Service cannot be given to the cluster, and names another reason if there is one.
func (c *Syncer) reportDenial(obs *observed, wishes bool) {
	d := c.memory.denialOf(obs.key, obs.set.uid)
	taken := obs.verdict == byCluster && obs.service != nil && switched(obs.service)
	switch {
	case taken && d.has(operationLeave):
		const kept = "The controller cannot give the Service to the controllers of the cluster: "
		if c.memory.tell(obs.key, kept) {
			c.warn(obs, kept+d.kept)
		}
	case wishes && !taken && len(d.operations) > 0 && obs.cause.Reason != d.why.Reason && obs.cause.Reason != "":
		if c.memory.tell(obs.key, d.why.Reason) {
			c.warn(obs, d.why.Message)
		}
	}
}

func (c *Syncer) warn(obs *observed, message string) {
	children.SendEvent(c.Recorder, obs.set.object(), nil, plan.Event{
		Type: corev1.EventTypeWarning, Reason: jobsetv1alpha2.ServiceEndpointsByCluster, Note: message,
	})
}
