// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// Reasons for which containers wait or have ended, in the words of kubelets. k8s.io/api has no constants for them.
const (
	ReasonErrImagePull      = "ErrImagePull"
	ReasonImagePullBackOff  = "ImagePullBackOff"
	ReasonInvalidImageName  = "InvalidImageName"
	ReasonErrImageNeverPull = "ErrImageNeverPull"

	ReasonPodInitializing   = "PodInitializing"
	ReasonContainerCreating = "ContainerCreating"
	ReasonCompleted         = "Completed"
)
