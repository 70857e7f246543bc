// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

const (
	// leaseName and leaseNamespace are where the controller holds its lease unless it was told otherwise.
	leaseName      = helper.ControllerLease
	leaseNamespace = helper.ControllerNamespace
	// maxEvents bounds each of the two lists of events.
	maxEvents = 1000
	// maxNamed bounds how many objects of a kind are read by name.
	maxNamed = 10
	// unansweredAfter is how long the API of JobSets may take.
	unansweredAfter = 10 * time.Second
	// maxNodes bounds the list of nodes that pods might run on.
	maxNodes = 500
)

var apiServices = outage.APIServices

// loader fills the evidence, from many requests at once.
type loader struct {
	*cli.Clients
	e  *Evidence
	mu sync.Mutex
	// jobs and pods are all that carry the name of the set.
	jobs []batchv1.Job
	sets []appsv1.StatefulSet
	pods []corev1.Pod
	// roleSets are LeaderWorkerSets.
	roleSets []leaderworkersetv1.LeaderWorkerSet
	// document reads a document of the API server; nil without a connection.
	document func(ctx context.Context, path string) ([]byte, error)
}

// load reads what a diagnosis of an object of the kind needs. First comes what every diagnosis needs; then, once that shows what to look
// for, the rest. A source that may not be read leaves a gap. An error means that nothing can be said at all.
func load(ctx context.Context, c *cli.Clients, of *kind, name string) (*Evidence, error) {
	l := &loader{Clients: c, document: documentOf(c), e: &Evidence{
		Namespace: c.Namespace, Name: name, Now: time.Now(), of: of,
		Nodes: map[string]*corev1.Node{}, Claims: map[string]*corev1.PersistentVolumeClaim{}, Services: map[string]*corev1.Service{},
		TakenJobs: map[string]*batchv1.Job{},
	}}
	l.parallel(ctx, l.readSubject, func(ctx context.Context) { of.readChildren(l, ctx) }, l.readPodsOfSubject, l.readAPIService, l.readLeases,
		func(ctx context.Context) { l.readEvents(ctx, "involvedObject.kind!=Pod") },
		func(ctx context.Context) { l.readEvents(ctx, "involvedObject.kind=Pod") })
	if err := l.e.Unread; ctx.Err() != nil || err != nil && !explainable(err) {
		return nil, cmp.Or(err, ctx.Err())
	}
	if l.e.subject() == nil && of.podsOfChildren {
		l.readPods(ctx)
	}
	l.assemble()
	if l.e.subject() == nil {
		l.parallel(ctx, l.readNear, l.readElsewhere, l.readNodes, l.readRecord, l.readGates)
	} else {
		l.parallel(ctx, append(of.more(l), l.readNodes, l.readClaims, l.readDeviceClaims, l.readQuotas, l.readCandidates, l.readPodGroups,
			l.readBudgets)...)
	}
	slices.SortFunc(l.e.NotLookedAt, compareGaps)
	return l.e, ctx.Err()
}

// explainable reports whether there is a finding although the set could not be read.
func explainable(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && isStatus(err)
}

func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func (l *loader) parallel(ctx context.Context, reads ...func(context.Context)) {
	group, ctx := errgroup.WithContext(ctx)
	for _, read := range reads {
		group.Go(func() error {
			read(ctx)
			return nil
		})
	}
	_ = group.Wait()
}

// got returns whether a source could be read, and notes it as a gap if not.
func (l *loader) got(source string, err error) bool {
	if err != nil {
		l.gap(source, err)
	}
	return err == nil
}

// gap notes a source that could not be read.
func (l *loader) gap(source string, err error) {
	reason := oneLine(err.Error())
	var network net.Error
	switch {
	case apierrors.IsForbidden(err):
		reason = reasonForbidden
	case apierrors.IsUnauthorized(err):
		reason = "unauthorized"
	case apierrors.IsNotFound(err):
		reason = "not served"
	case errors.As(err, &network) && network.Timeout():
		reason = "timeout"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.e.NotLookedAt, Gap{source, reason}) {
		l.e.NotLookedAt = append(l.e.NotLookedAt, Gap{source, reason})
	}
}

// readSubject reads the object itself. Its API may be another server's, which can leave the question unanswered.
func (l *loader) readSubject(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, unansweredAfter)
	defer stop()
	l.e.Unread = l.e.kind().read(l, ctx)
}

// named lists what carries the name of the set, from the cache of the API server.
func (l *loader) named() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: l.e.kind().label + "=" + l.e.Name, ResourceVersion: "0"}
}

func (l *loader) readJobs(ctx context.Context) {
	if list, err := l.Kube.BatchV1().Jobs(l.Namespace).List(ctx, l.named()); l.got("jobs", err) {
		l.jobs = list.Items
	}
}

func compareGaps(a, b Gap) int {
	return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Reason, b.Reason))
}

// readPodsOfSubject reads the pods, unless they are read with the children.
func (l *loader) readPodsOfSubject(ctx context.Context) {
	if !l.e.kind().podsOfChildren {
		l.readPods(ctx)
	}
}

func (l *loader) readPods(ctx context.Context) {
	if list, err := l.Kube.CoreV1().Pods(l.Namespace).List(ctx, l.named()); l.got("pods", err) {
		l.pods = list.Items
	}
}

// assemble keeps the children of the set. Without the set, all that carry its name may be.
func (l *loader) assemble() {
	if l.e.subject() != nil {
		l.e.kind().assemble(l)
		return
	}
	for i := range l.jobs {
		l.e.Jobs = append(l.e.Jobs, &l.jobs[i])
	}
	for i := range l.pods {
		l.e.Pods = append(l.e.Pods, &l.pods[i])
	}
}

// readEvents reads warnings. Those about pods are apart from the others, so that many of them cannot push the others out
// of the bound.
func (l *loader) readEvents(ctx context.Context, selector string) {
	list, err := l.Kube.CoreV1().Events(l.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning," + selector, Limit: maxEvents})
	if !l.got("events", err) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.e.Events = append(l.e.Events, list.Items...)
}

func (l *loader) readAPIService(ctx context.Context) {
	service, err := l.Dynamic.Resource(apiServices).Get(ctx, l.e.kind().apiService(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		l.gap("apiservices", err)
	default:
		l.e.APIService = service
	}
}

// readRecord reads why the server refuses to serve its store, if that may be why the object could not be read.
func (l *loader) readRecord(ctx context.Context) {
	if !outage.Concerns(l.e.Unread) && !errors.Is(l.e.Unread, context.DeadlineExceeded) {
		return
	}
	record, err := outage.Record(ctx, l.Kube)
	if err != nil {
		l.gap(outage.Location, err)
	}
	l.e.Record = record
}

// readLeases reads the lease where it usually is, and only if it is not there looks for it everywhere.
func (l *loader) readLeases(ctx context.Context) {
	leases := l.Kube.CoordinationV1()
	lease, err := leases.Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err == nil {
		l.e.Leases, l.e.LeasesRead = append(l.e.Leases, *lease), true
		return
	}
	list, err := leases.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + leaseName})
	if !l.got("leases", err) {
		return
	}
	l.e.LeasesRead = true
	for i := range list.Items {
		if list.Items[i].Name == leaseName {
			l.e.Leases = append(l.e.Leases, list.Items[i])
		}
	}
}
