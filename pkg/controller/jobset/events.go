// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

const (
	// action is that of every event.
	action = "Reconciling"
	// maxNote is the longest note that the events API accepts.
	maxNote = 1024
)

// Events about children that could not be created. They are sent at once and again with every try; the events API joins
// equal ones into a series.

func jobCreationFailed(err error) plan.Event {
	return plan.Event{Type: corev1.EventTypeWarning, Reason: "JobCreationFailed", Note: err.Error()}
}

func serviceCreationFailed(err error) plan.Event {
	return plan.Event{Type: corev1.EventTypeWarning, Reason: "HeadlessServiceCreationFailed", Note: err.Error()}
}

func claimCreationFailed(err error) plan.Event {
	return plan.Event{Type: corev1.EventTypeWarning, Reason: "PVCCreationFailed", Note: err.Error()}
}

func labelsRestored(job string) plan.Event {
	return plan.Event{Type: corev1.EventTypeWarning, Reason: "JobLabelsRestored", Note: fmt.Sprintf(
		"somebody removed or changed labels by which the jobset knows its job %q; they are restored", job)}
}

func resourcesRefused(job string, err error) plan.Event {
	return plan.Event{Type: corev1.EventTypeWarning, Reason: "FailedResourcePropagation", Note: fmt.Sprintf(
		"job %q does not get the resources of its template; the cluster needs the feature MutablePodResourcesForSuspendedJobs: %v", job, err)}
}

// report tells of transitions of the set.
func (c *Controller) report(js *jobsetv1alpha2.JobSet, events ...plan.Event) {
	for _, event := range events {
		c.send(js, event)
	}
}

// reportFailure tells of a child that could not be created. The event is about the set, but not about one version of
// it: tries before and after a status write then belong to the same series.
func (c *Controller) reportFailure(js *jobsetv1alpha2.JobSet, event plan.Event) {
	c.send(&corev1.ObjectReference{
		APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet", Namespace: js.Namespace, Name: js.Name, UID: js.UID,
	}, event)
}

func (c *Controller) send(regarding runtime.Object, event plan.Event) {
	c.Recorder.Eventf(regarding, nil, event.Type, event.Reason, action, "%s", text.TruncateWithEllipsis(event.Note, maxNote))
}
