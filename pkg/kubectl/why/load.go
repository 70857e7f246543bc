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
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/snapshot"
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

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// apiServiceName is that of the group and version of JobSets.
var apiServiceName = jobsetv1alpha2.SchemeGroupVersion.Version + "." + jobsetv1alpha2.GroupName

// loader fills the evidence, from many requests at once.
type loader struct {
	*cli.Clients
	e  *Evidence
	mu sync.Mutex
	// jobs and pods are all that carry the name of the set.
	jobs []batchv1.Job
	pods []corev1.Pod
}

// Load reads what a diagnosis of the set needs. First comes what every diagnosis needs; then, once that shows what to look
// for, the rest. A source that may not be read leaves a gap. An error means that nothing can be said at all.
func Load(ctx context.Context, c *cli.Clients, name string) (*Evidence, error) {
	l := &loader{Clients: c, e: &Evidence{
		Namespace: c.Namespace, Name: name, Now: time.Now(),
		Nodes: map[string]*corev1.Node{}, Claims: map[string]*corev1.PersistentVolumeClaim{}, Services: map[string]*corev1.Service{},
		TakenJobs: map[string]*batchv1.Job{},
	}}
	l.parallel(ctx, l.readSet, l.readJobs, l.readPods, l.readAPIService, l.readLeases,
		func(ctx context.Context) { l.readEvents(ctx, "involvedObject.kind!=Pod") },
		func(ctx context.Context) { l.readEvents(ctx, "involvedObject.kind=Pod") })
	if err := l.e.Unread; ctx.Err() != nil || err != nil && !explainable(err) {
		return nil, cmp.Or(err, ctx.Err())
	}
	l.assemble()
	if l.e.JobSet == nil {
		l.parallel(ctx, l.readNear, l.readElsewhere, l.readNodes)
	} else {
		d := newDiagnosis(l.e)
		l.parallel(ctx, l.readNodes, l.readKueue, l.readClaims, l.readQuotas, l.readCandidates, l.readPodGroups,
			func(ctx context.Context) { l.readService(ctx, d) }, func(ctx context.Context) { l.readTakenJobs(ctx, d) })
	}
	slices.SortFunc(l.e.NotLookedAt, func(a, b Gap) int { return strings.Compare(a.Source, b.Source) })
	return l.e, ctx.Err()
}

// explainable reports whether there is a finding although the set could not be read.
func explainable(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
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

// readSet reads the set itself. Its API may be another server's, which can leave the question unanswered.
func (l *loader) readSet(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, unansweredAfter)
	defer stop()
	l.e.JobSet, l.e.Unread = l.JobSets.JobsetV1alpha2().JobSets(l.Namespace).Get(ctx, l.e.Name, metav1.GetOptions{})
	if l.e.Unread != nil {
		l.e.JobSet = nil
	}
}

// named lists what carries the name of the set, from the cache of the API server.
func (l *loader) named() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: jobsetv1alpha2.JobSetNameKey + "=" + l.e.Name, ResourceVersion: "0"}
}

func (l *loader) readJobs(ctx context.Context) {
	list, err := l.Kube.BatchV1().Jobs(l.Namespace).List(ctx, l.named())
	if err != nil {
		l.gap("jobs", err)
		return
	}
	l.jobs = list.Items
}

func (l *loader) readPods(ctx context.Context) {
	list, err := l.Kube.CoreV1().Pods(l.Namespace).List(ctx, l.named())
	if err != nil {
		l.gap("pods", err)
		return
	}
	l.pods = list.Items
}

// assemble keeps the children of the set. Without the set, all that carry its name may be.
func (l *loader) assemble() {
	if l.e.JobSet != nil {
		set := snapshot.Assemble(l.e.JobSet, l.jobs, l.pods, l.e.Now)
		l.e.Jobs, l.e.Pods = set.Jobs, set.Pods
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
	if err != nil {
		l.gap("events", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.e.Events = append(l.e.Events, list.Items...)
}

func (l *loader) readAPIService(ctx context.Context) {
	service, err := l.Dynamic.Resource(apiServices).Get(ctx, apiServiceName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		l.gap("apiservices", err)
	default:
		l.e.APIService = service
	}
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
	if err != nil {
		l.gap("leases", err)
		return
	}
	l.e.LeasesRead = true
	for i := range list.Items {
		if list.Items[i].Name == leaseName {
			l.e.Leases = append(l.e.Leases, list.Items[i])
		}
	}
}
