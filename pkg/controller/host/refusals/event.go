// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusals knows of the pods that the API refuses, for example because a quota is used up, a PriorityClass is missing or a webhook
// denies them. The controllers of Jobs and StatefulSets create pods, so that only their events FailedCreate show why one is missing.
//
// One watch with a field selector follows these events for all kinds. Its cache keeps about 300 bytes of each; the API
// forgets events after an hour, and the controllers of the cluster send few about one object. An event says that a pod
// was refused, not that it still is: it counts while the Job or StatefulSet has had too few pods ever since, and for
// half an hour.
package refusals

import (
	"strconv"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/generic/reasons"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/informers"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// maxMessage is the length of a message in bytes.
const maxMessage = 400

// Event is what the cache keeps of an event.
type Event struct {
	name      string
	namespace unique.Handle[string]
	version   uint64
	// about is the name of the object without pods, as a rule a part of the memory of the name.
	about  string
	uid    types.UID
	reason string
	// message is what the API said, without the name of the pod, so that all refusals for one cause say the same.
	message unique.Handle[string]
	// at is when it was seen last.
	at time.Time
}

var _ metav1.ObjectMetaAccessor = &Event{}

// GetObjectMeta returns what the cache needs to know of an object.
func (e *Event) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: e.name, Namespace: e.namespace.Value(), ResourceVersion: strconv.FormatUint(e.version, 10)}
}

// About returns the name of the Job or StatefulSet whose pod was refused.
func (e *Event) About() cache.ObjectName { return cache.NewObjectName(e.namespace.Value(), e.about) }

// UID returns the UID of that object.
func (e *Event) UID() types.UID { return e.uid }

func newEvent(e *corev1.Event) *Event {
	kept := &Event{
		name: e.Name, namespace: unique.Make(e.Namespace), about: e.InvolvedObject.Name, uid: e.InvolvedObject.UID,
		reason: children.ReasonOfText(e.Message), message: unique.Make(words(e.Message)), at: lastSeen(e),
	}
	kept.version, _ = strconv.ParseUint(e.ResourceVersion, 10, 64) // what is not well-formed is as good as absent
	if strings.HasPrefix(kept.name, kept.about) {
		kept.about = kept.name[:len(kept.about)]
	}
	return kept
}

func lastSeen(e *corev1.Event) time.Time {
	at := e.EventTime.Time
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	if e.LastTimestamp.After(at) {
		at = e.LastTimestamp.Time
	}
	return at
}

// words returns what the API said, without what differs from pod to pod.
func words(message string) string {
	for _, before := range []string{"Error creating: ", " failed error: "} {
		if _, rest, found := strings.Cut(message, before); found {
			message = rest
		}
	}
	for _, verb := range []string{" is forbidden: ", " is invalid: "} {
		if object, rest, found := strings.Cut(message, verb); found && strings.HasSuffix(object, `"`) {
			message = rest
		}
	}
	return text.TruncateWithEllipsis(text.Printable(strings.TrimSpace(message)), maxMessage)
}

// indexAbout is the index of events by the UID of the object that they are about.
const indexAbout = "about"

// Need is what a kind needs of the events about objects of a kind, "Job" or "StatefulSet".
func Need(factory *informers.Kind, kind string) informers.Need {
	return informers.Need{
		Resource: factory.FailedCreations(),
		Only: func(obj runtime.Object) bool {
			e, ok := obj.(*corev1.Event)
			return ok && e.InvolvedObject.Kind == kind && e.Reason == reasons.FailedCreate
		},
		Transform: func(obj any) (any, error) {
			if e, ok := obj.(*corev1.Event); ok {
				return newEvent(e), nil
			}
			return obj, nil
		},
		Indexers: cache.Indexers{indexAbout: func(obj any) ([]string, error) {
			if e, ok := obj.(*Event); ok {
				return []string{string(e.uid)}, nil
			}
			return nil, nil
		}},
		Optional: true,
	}
}
