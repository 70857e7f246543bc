// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events sends events to the main cluster that say which user acted on which object. Every action becomes an event
// of its own: a library that joins events of the same reason into a series would keep the name of the first user only.
//
// Requests do not wait for events. They are sent one after the other from a queue of limited length. An event that cannot
// be sent after a few tries is lost; the history in the status of the object has the same information.
package events

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

const (
	maxQueued = 1000
	// sendTimeout bounds one try.
	sendTimeout = 10 * time.Second
	// closeTimeout bounds what is left to send when the server ends.
	closeTimeout = 3 * time.Second
	// quiet is the time after a message about lost events in which there is no other.
	quiet = 10 * time.Minute
)

// retries are the tries for one event: while they last, the others wait.
var retries = wait.Backoff{Steps: 3, Duration: time.Second, Factor: 3, Jitter: 0.2}

// Sender sends events.
type Sender struct {
	client   typedeventsv1.EventsV1Interface
	reporter string
	instance string
	retries  wait.Backoff

	queue    chan *eventsv1.Event
	overflow atomic.Int64
	stop     chan struct{}
	cancel   context.CancelFunc
	done     chan struct{}

	// Those below belong to the goroutine that sends.
	lost   int64
	logged time.Time
}

var _ provider.Recorder = &Sender{}

// Start returns a sender that reports under the name. It works until it is closed; the context is for its logger.
func Start(ctx context.Context, reporter string, client typedeventsv1.EventsV1Interface) *Sender {
	return start(ctx, reporter, client, retries)
}

func start(ctx context.Context, reporter string, client typedeventsv1.EventsV1Interface, retries wait.Backoff) *Sender {
	instance := reporter
	if host, err := os.Hostname(); err == nil {
		instance += "-" + host
	}
	s := &Sender{
		client: client, reporter: reporter, instance: instance, retries: retries,
		queue: make(chan *eventsv1.Event, maxQueued), stop: make(chan struct{}), done: make(chan struct{}),
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go s.run(ctx)
	return s
}

// Record takes an event to send. It does not wait: when too many are waiting already, the event is lost.
func (s *Sender) Record(event provider.Event) {
	now := time.Now()
	select {
	case s.queue <- &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: event.Regarding.Namespace, Name: util.GenerateEventName(event.Regarding.Name,
			now.UnixNano())},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: s.reporter,
		ReportingInstance:   s.instance,
		Type:                eventType(event),
		Reason:              event.Reason,
		Action:              event.Action,
		Note:                event.Note,
		Regarding:           event.Regarding,
	}:
	default:
		s.overflow.Add(1)
	}
}

func eventType(event provider.Event) string {
	if event.Warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// Close sends what is waiting, as far as that is possible in a short time, and ends the sender.
func (s *Sender) Close() {
	close(s.stop)
	select {
	case <-s.done:
	case <-time.After(closeTimeout):
	}
	s.cancel()
	<-s.done
}

func (s *Sender) run(ctx context.Context) {
	defer close(s.done)
	for {
		select {
		case event := <-s.queue:
			s.send(ctx, event)
		case <-s.stop:
			for len(s.queue) > 0 && ctx.Err() == nil {
				s.send(ctx, <-s.queue)
			}
			return
		}
	}
}

// send tries until the event is stored or it is clear that it will not be.
func (s *Sender) send(ctx context.Context, event *eventsv1.Event) {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, s.retries, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		defer cancel()
		_, last = s.client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
		return last == nil || !transient(last), nil
	})
	switch {
	case err == nil && (last == nil || uninteresting(last)):
	case last != nil:
		s.report(ctx, event, last)
	default:
		s.report(ctx, event, err)
	}
}

// transient reports whether a retry may succeed: the API did not answer, or it was busy.
func transient(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown, metav1.StatusReasonServerTimeout, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests,
		metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable:
		return true
	}
	return false
}

// uninteresting returns whether an error needs no report: an earlier try got through after all, or the namespace is being deleted.
func uninteresting(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// report logs that an event was lost, unless it has done so a short time ago: without the permission, all are.
func (s *Sender) report(ctx context.Context, event *eventsv1.Event, err error) {
	s.lost++
	if !s.logged.IsZero() && time.Since(s.logged) < quiet {
		return
	}
	klog.FromContext(ctx).Error(err, "Events about actions are lost; the server's identity needs the permissions of "+
		"artifacts/base/rbac/apiserver.yaml",
		"kind", event.Regarding.Kind, "object", klog.KRef(event.Namespace, event.Regarding.Name), "reason", event.Reason, "lost",
		s.lost+s.overflow.Swap(0), "silentFor", quiet)
	s.lost, s.logged = 0, time.Now()
}
