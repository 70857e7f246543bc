// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/informers/externalversions/internalinterfaces"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Source is an object with the pods that have logs.
type Source struct {
	metav1.Object
	// kind is the kind of the object, and noun what sentences call it.
	kind cli.Kind
	noun string
	// ref is the object as commands of the plugin take it, and state what it does.
	ref, state string
	// pods are in the order in which their logs are printed.
	pods []*corev1.Pod
	// prepare checks the selection, completes it, and returns what is on record of the attempts that it is about.
	prepare func(*selection) (records, error)
	// selector selects the pods of the object.
	selector string
	// informer makes an informer of objects of the kind. over returns whether the object that has the name now is another one, or will have
	// no new pods.
	informer func(client versioned.Interface, namespace string, resync time.Duration, indexers cache.Indexers,
		tweak internalinterfaces.TweakListOptionsFunc) cache.SharedIndexInformer
	over func(any) bool
}

// title names the object, like "jobset train".
func (s *Source) title() string { return s.kind.Names[0] + " " + s.GetName() }

// records are the attempts on record, the oldest first.
type records struct {
	attempts []record
	// absent is why there are none.
	absent error
}

// record is an attempt.
type record struct {
	// number counts the attempts from 1; 0 for the former run of a group of a LeaderWorkerSet, which has none.
	number int
	// title names it, like "attempt 2", and cause is the failure that ended it; nil if none did.
	title string
	cause *jobsetv1alpha2.FailureCause
	// pods are the pods that ran in it.
	pods func([]*corev1.Pod) []*corev1.Pod
}

// find returns the attempt of that number.
func (h records) find(s *Source, number int) (*record, error) {
	if len(h.attempts) == 0 || h.attempts[0].number == 0 {
		return nil, fmt.Errorf("--attempt: %w", h.absent)
	}
	for i := range h.attempts {
		if h.attempts[i].number == number {
			return &h.attempts[i], nil
		}
	}
	return nil, fmt.Errorf("--attempt: attempt %d is not on record; those of %s are %d to %d", number, s.title(), h.attempts[0].number,
		h.attempts[len(h.attempts)-1].number)
}

// newestCause returns the newest attempt that a failure ended, or nil.
func (h records) newestCause() *record {
	for i := len(h.attempts) - 1; i >= 0; i-- {
		if h.attempts[i].cause != nil {
			return &h.attempts[i]
		}
	}
	return nil
}
