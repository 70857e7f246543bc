// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package disaggregatedset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/disaggregatedset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

// send sends an event about the set, and about one of its LeaderWorkerSets. What was done is about one version of the
// set, so that each step of a rollout has its own event; warnings are not, so that repeated ones belong to the same
// series.
func send(recorder events.EventRecorder, ds *disaggregatedsetv1.DisaggregatedSet, event plan.Event) {
	regarding := &corev1.ObjectReference{
		APIVersion: disaggregatedsetv1.SchemeGroupVersion.String(), Kind: "DisaggregatedSet", Namespace: ds.Namespace, Name: ds.Name, UID: ds.UID,
	}
	if event.Type == corev1.EventTypeNormal {
		regarding.ResourceVersion = ds.ResourceVersion
	}
	var related runtime.Object
	if event.Child != "" {
		related = &corev1.ObjectReference{
			APIVersion: leaderworkersetv1.SchemeGroupVersion.String(), Kind: "LeaderWorkerSet", Namespace: ds.Namespace, Name: event.Child,
		}
	}
	recorder.Eventf(regarding, related, event.Type, event.Reason, event.Action, "%s", text.TruncateWithEllipsis(text.Printable(event.Note),
		children.MaxNote))
}
