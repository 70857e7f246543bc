// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/children"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/jobset/plan"
)

// report sends an event about a transition of the set.
func (s *Syncer) report(js *jobsetv1alpha2.JobSet, event plan.Event) { s.send(js, event) }

// warn sends an event about a child. It regards the set, but not one version of it: tries before and after a status write
// then belong to the same series.
func (s *Syncer) warn(js *jobsetv1alpha2.JobSet, event plan.Event) {
	s.send(&corev1.ObjectReference{
		APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet", Namespace: js.Namespace, Name: js.Name, UID: js.UID,
	}, event)
}

func (s *Syncer) send(regarding runtime.Object, event plan.Event) {
	children.SendEvent(s.deps.Recorder, regarding, event.Type, event.Reason, event.Note)
}
