// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"path"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

const (
	// serverName and controllerName are the values of nameLabel of both programs.
	serverName, controllerName = "jobset-apiserver", "jobset-controller"
	nameLabel                  = "app.kubernetes.io/name"
	// readTimeout bounds the reading of one object, so that what does not answer does not hide the rest.
	readTimeout = 6 * time.Second
	// maxPods is how many pods of a program are looked at.
	maxPods = 100
)

// inspection is what more than one check looks at.
type inspection struct {
	*cli.Clients
	get get
	// now is the time of the machine of the user.
	now time.Time

	// main is what kube-apiserver says about its version, and mainErr why it does not; took is how long that took, and asked when it began.
	main    answer
	mainErr error
	asked   time.Time
	took    time.Duration

	// services are the APIServices of kinds; nil for those that do not exist.
	services   []*unstructured.Unstructured
	serviceErr error
	// record is the record of the store; nil if there is none, or if it was not read for the reason in recordErr.
	record    *witness.Record
	recordErr error
	// away is the error of a request for JobSets, if it says that they are not served. The condition of the APIService may be older.
	away error

	// health is what the server says about itself; nil for the reason in healthErr. healthAt is when it was asked, and
	// healthTook how long it took.
	health     *selfcheck.Document
	healthErr  error
	healthAt   time.Time
	healthTook time.Duration

	// namespace has the Service of JobSets, and the programs.
	namespace string
	// service is what the APIService of JobSets names; nil for the reason in backendErr.
	service    *corev1.Service
	backendErr error
	slices     []discoveryv1.EndpointSlice
	slicesErr  error
	// servers and controllers are the pods of the programs.
	servers, controllers []corev1.Pod
	podsErr              error
	// unready are the readiness checks that fail of a pod of the server, if nothing else is wrong with them.
	unready  []string
	lease    *coordinationv1.Lease
	leaseErr error
}

// read asks for everything at the same time, and then for what depends on it.
func read(ctx context.Context, c *cli.Clients, ask get, now time.Time) *inspection {
	p := &inspection{Clients: c, get: ask, now: now}
	together(ctx, p.readMain, p.readServices, p.readRecord, p.readJobSets, p.readHealth)
	p.namespace = helper.ControllerNamespace
	if namespace, _ := p.backend(); namespace != "" {
		p.namespace = namespace
	}
	together(ctx, p.readBackend, p.readPods, p.readLease)
	together(ctx, p.readReadiness)
	return p
}

// together calls functions at the same time, each with a time limit.
func together(ctx context.Context, functions ...func(context.Context)) {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(func() {
			ctx, stop := context.WithTimeout(ctx, readTimeout)
			defer stop()
			f(ctx)
		})
	}
	group.Wait()
}

func (p *inspection) readMain(ctx context.Context) {
	p.asked = time.Now()
	p.main, p.mainErr = p.get(ctx, "/version")
	p.took = time.Since(p.asked)
}

func (p *inspection) readServices(ctx context.Context) {
	for _, kind := range outage.Kinds() {
		service, err := outage.APIService(ctx, p.Dynamic, kind)
		p.services = append(p.services, service)
		if err != nil {
			p.serviceErr = err
		}
	}
	// An older installation has no archive of runs. Whoever may read some APIServices may lack the permission to read one of a later release.
	archive, err := outage.APIService(ctx, p.Dynamic, cli.Run)
	switch {
	case archive != nil && err == nil:
		p.services = append(p.services, archive)
	case err != nil && p.serviceErr == nil && !apierrors.IsForbidden(err):
		p.serviceErr = err
	}
}

// kinds are the kinds whose APIServices are looked at, one for each group: runs only if they have one.
func (p *inspection) kinds() []cli.Kind {
	if kinds := outage.Kinds(); len(p.services) <= len(kinds) {
		return kinds
	}
	return append(outage.Kinds(), cli.Run)
}

func (p *inspection) readRecord(ctx context.Context) {
	p.record, p.recordErr = outage.Record(ctx, p.Kube)
}

func (p *inspection) readJobSets(ctx context.Context) {
	if _, err := p.JobSets.JobsetV1alpha2().JobSets("").List(ctx, metav1.ListOptions{Limit: 1}); outage.Concerns(err) {
		p.away = err
	}
}

func (p *inspection) readHealth(ctx context.Context) {
	p.healthAt = time.Now()
	a, err := p.get(ctx, path.Join("/apis", cli.JobSet.GroupVersion.String(), selfcheck.Resource))
	p.healthTook = time.Since(p.healthAt)
	if err == nil {
		err = a.failure()
	}
	if err == nil {
		document := &selfcheck.Document{}
		if err = json.Unmarshal(a.body, document); err == nil {
			p.health = document
		}
	}
	p.healthErr = err
}

// backend is the Service of JobSets; empty if no other server than kube-apiserver is registered for them.
func (p *inspection) backend() (namespace, name string) {
	if len(p.services) == 0 || p.services[0] == nil {
		return "", ""
	}
	namespace, _, _ = unstructured.NestedString(p.services[0].Object, "spec", "service", "namespace")
	name, _, _ = unstructured.NestedString(p.services[0].Object, "spec", "service", "name")
	return namespace, name
}

func (p *inspection) readBackend(ctx context.Context) {
	_, name := p.backend()
	if name == "" {
		return
	}
	if p.service, p.backendErr = p.Kube.CoreV1().Services(p.namespace).Get(ctx, name, metav1.GetOptions{}); p.backendErr != nil {
		p.service = nil
		return
	}
	slices, err := p.Kube.DiscoveryV1().EndpointSlices(p.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName +
		"=" + name, Limit: page})
	if p.slicesErr = err; err == nil {
		p.slices = slices.Items
	}
}

func (p *inspection) readPods(ctx context.Context) {
	for name, to := range map[string]*[]corev1.Pod{serverName: &p.servers, controllerName: &p.controllers} {
		options := metav1.ListOptions{LabelSelector: labels.Set{nameLabel: name}.String(), Limit: maxPods}
		list, err := p.Kube.CoreV1().Pods(p.namespace).List(ctx, options)
		if err != nil {
			p.podsErr = err
			continue
		}
		*to = list.Items
	}
}

func (p *inspection) readLease(ctx context.Context) {
	p.lease, p.leaseErr = p.Kube.CoordinationV1().Leases(p.namespace).Get(ctx, helper.ControllerLease, metav1.GetOptions{})
}

// clock is the time of kube-apiserver, which wrote the times of objects; that of the user if it is not known.
func (p *inspection) clock() time.Time {
	if p.main.date.IsZero() {
		return p.now
	}
	return p.main.date
}

// serves returns whether kube-apiserver reaches a server of JobSets.
func (p *inspection) serves() bool {
	if p.away != nil || len(p.services) == 0 || p.services[0] == nil {
		return false
	}
	c := outage.Available(p.services[0])
	return c != nil && c.Status == metav1.ConditionTrue
}

// refuses returns whether a server refuses to serve its store, and has confirmed it a short time ago, or whether the store is lost.
func (p *inspection) refuses() bool {
	if len(p.lost()) > 0 {
		return true
	}
	return p.record != nil && p.record.Refusal != nil && len(p.record.Refusal.Groups) == 0 && !outage.Stale(p.record.Refusal, p.now) &&
		!p.serves()
}
