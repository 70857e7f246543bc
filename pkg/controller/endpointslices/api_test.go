// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/simulation"
)

// This file holds the clients through which the controller writes. They have what it uses of the main API.

type kube struct {
	kubernetes.Interface
	p *process
}

func (k kube) DiscoveryV1() discoveryv1client.DiscoveryV1Interface { return discovery{p: k.p} }
func (k kube) CoreV1() corev1client.CoreV1Interface                { return core{p: k.p} }

type discovery struct {
	discoveryv1client.DiscoveryV1Interface
	p *process
}

func (d discovery) EndpointSlices(string) discoveryv1client.EndpointSliceInterface {
	return sliceClient{p: d.p, client: simulation.Client[*discoveryv1.EndpointSlice]{
		Resource: d.p.slices, Sender: d.p.sender, Own: isManaged, Created: d.p.rules.created, Deleted: d.p.rules.deleted,
	}}
}

type sliceClient struct {
	discoveryv1client.EndpointSliceInterface
	p      *process
	client simulation.Client[*discoveryv1.EndpointSlice]
}

func (c sliceClient) Create(ctx context.Context, wanted *discoveryv1.EndpointSlice, options metav1.CreateOptions) (*discoveryv1.EndpointSlice, error) {
	wanted = wanted.DeepCopy()
	wanted.Name = wanted.GenerateName + string(c.p.NewUID("x"))
	if c.p.mutant.lost == "create endpointslice" {
		return wanted, nil
	}
	created, err := c.client.Create(ctx, wanted, options)
	if err == nil && !c.p.sender.Deposed {
		c.p.created[created.Name] = true
		c.p.repaired(c.p.Now())
		c.p.rules.accepted(c.p, "create endpointslice")
	}
	return created, c.p.answer("create endpointslice", err)
}

func (c sliceClient) Update(ctx context.Context, wanted *discoveryv1.EndpointSlice, options metav1.UpdateOptions) (*discoveryv1.EndpointSlice, error) {
	if c.p.mutant.lost == "update endpointslice" {
		return wanted, nil
	}
	updated, err := c.client.Update(ctx, wanted, options)
	if err == nil && !c.p.sender.Deposed {
		c.p.repaired(c.p.Now())
		c.p.rules.accepted(c.p, "update endpointslice")
	}
	return updated, c.p.answer("update endpointslice", err)
}

func (c sliceClient) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	if c.p.mutant.lost == "delete endpointslice" {
		return nil
	}
	return c.p.answer("delete endpointslice", c.client.Delete(ctx, name, options))
}

func (c sliceClient) List(context.Context, metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
	return simulation.Read(c.p.sender, func() (*discoveryv1.EndpointSliceList, error) {
		list := &discoveryv1.EndpointSliceList{}
		for _, slice := range c.p.slices.Objects {
			if slice.Labels[discoveryv1.LabelServiceName] == name {
				list.Items = append(list.Items, *slice)
			}
		}
		if c.p.mutant.blind {
			all := discoveryv1.EndpointSlice{}
			for _, pod := range c.p.pods.Objects {
				all.Endpoints = append(all.Endpoints, discoveryv1.Endpoint{Addresses: []string{pod.Status.PodIP}})
			}
			list.Items = append(list.Items, all)
		}
		return list, nil
	})
}

type core struct {
	corev1client.CoreV1Interface
	p *process
}

func (c core) Services(string) corev1client.ServiceInterface { return serviceClient{p: c.p} }

type serviceClient struct {
	corev1client.ServiceInterface
	p *process
}

// Patch stores another selector.
func (c serviceClient) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Service, error) {
	var version string
	var selector map[string]string
	steps := []struct {
		Path  string
		Value json.RawMessage
	}{}
	if err := errors.Join(json.Unmarshal(patch, &steps), json.Unmarshal(steps[0].Value, &version), json.Unmarshal(steps[1].Value, &selector)); err != nil || steps[1].Path != "/spec/selector" {
		panic("a patch that nobody expects: " + string(patch))
	}
	if c.p.mutant.lost == "patch service" {
		return &corev1.Service{}, nil
	}
	patched, err := simulation.Send(c.p.sender, &corev1.Service{}, func(known bool) (*corev1.Service, error) {
		live, found := c.p.services.Get(name)
		switch err := c.p.main.Refusals["patch service"]; {
		case err != nil:
			return nil, err
		case !found:
			return nil, simulation.ErrNotFound
		case live.ResourceVersion != version && !c.p.mutant.overwriting:
			c.p.Seen["conflicts"]++
			return nil, simulation.ErrConflict
		}
		before := live
		c.p.rules.patched(c.p, before, selector, known && !c.p.late)
		c.p.Note("  sets the selector to %v", selector)
		return c.p.services.Change(live, func(s *corev1.Service) { s.Spec.Selector = selector }), nil
	})
	return patched, c.p.answer("patch service", err)
}

// answer is the answer to a request. Those that were refused for good are noted.
func (p *process) answer(request string, err error) error {
	if refusal := p.main.Refusals[request]; refusal != nil && errors.Is(err, refusal) {
		p.Seen["refused: "+request]++
		p.Note("  refused: %s", request)
		p.refusedAt, p.refusals[request] = p.Now(), p.Now()
		p.sender.Denied(request, err)
		p.rules.refused(p.seen().GetUID())
		if p.mutant.deaf {
			return simulation.ErrServer
		}
	}
	return err
}

// randomRefusal returns an error with which a quota, a policy or a webhook may refuse a request for good. A missing
// permission counts only after a while, and is left to tests of its own.
func (e *env) randomRefusal() error {
	resource := discoveryv1.Resource("endpointslices")
	return simulation.OneOf[error](e.Dice,
		apierrors.NewForbidden(resource, "x", errors.New("exceeded quota: q, requested: count/x=1, used: count/x=1, limited: count/x=1")),
		apierrors.NewForbidden(resource, "x", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no")),
		apierrors.NewInvalid(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice").GroupKind(), "x", nil),
		apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		&apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound, Message: `admission webhook "w" denied the request: no team`}},
		&apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Message: `admission webhook "w" denied the request: frozen`}},
	)
}

// unlabeled returns a selector without our label.
func unlabeled(selector map[string]string) map[string]string {
	without := maps.Clone(selector)
	delete(without, jobsetv1alpha2.EndpointsKey)
	return without
}

// describe returns what matters in one line.
func (e *env) describe() string {
	if !e.Traced() {
		return ""
	}
	line := ""
	if js := e.set(name); js != nil {
		line = fmt.Sprintf("set %s asks %t deleted %t, ", js.UID, e.asks(js), js.DeletionTimestamp != nil)
	}
	if svc := e.service(); svc != nil {
		line += fmt.Sprintf("Service %s %v, ", svc.UID, svc.Spec.Selector)
	}
	for _, pod := range e.pods.Objects {
		line += fmt.Sprintf("%s %s %s %s ready %t; ", pod.Name, pod.UID, pod.Status.Phase, pod.Status.PodIP, isReady(pod))
	}
	for _, slice := range e.slices.Objects {
		line += slice.Name + "["
		for _, ep := range slice.Endpoints {
			line += ep.Addresses[0] + " "
		}
		line += "] "
	}
	return line
}
