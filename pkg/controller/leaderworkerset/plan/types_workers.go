// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Workers are what decisions use of the StatefulSet of the workers of one group, and its pods.
type Workers struct {
	Ref
	// Leader is the UID of the leader pod that controls it.
	Leader types.UID
	// ResourceVersion is the resource version of the StatefulSet.
	ResourceVersion string
	// Revision is the key of its revision.
	Revision string
	// Replicas is its spec.replicas, and Created its status.replicas.
	Replicas, Created int32
	// CreatedAt is when it was created.
	CreatedAt metav1.Time
	// Observed means that its controller has looked at it.
	Observed bool
	// Ready means that all of its pods are available and of its own current revision.
	Ready bool
	// Deleting means that it is being deleted.
	Deleting bool
	// Touched is when this controller last asked for another look at it; zero if never.
	Touched time.Time
	// Pods are the pods that it controls.
	Pods []Pod
	// Lost is the number of pods that vanished or were replaced since the StatefulSet was first complete, as far as this process has seen.
	Lost int
	// FirstLost is the pod that was lost first; empty if none was.
	FirstLost LostPod
	// Complete means that this process has seen all pods at once, none of them being deleted. NeverComplete means that it has seen all pods
	// that there were, and never all at once. A process that has started later knows neither.
	Complete, NeverComplete bool
}

// LostPod is what is known of a pod that is gone.
type LostPod struct {
	// Name is the name of the pod, and Node that of its node; empty if it had none.
	Name, Node string
}
