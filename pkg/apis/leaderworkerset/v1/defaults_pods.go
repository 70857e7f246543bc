// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// setPodDefaults fills in the defaults of the published schema of pods. The main API server has many more, which are not stored here:
// the revision of a set would depend on its version.
func setPodDefaults(pod *corev1.PodSpec) {
	for i := range pod.Volumes {
		setVolumeDefaults(&pod.Volumes[i])
	}
	for i := range pod.InitContainers {
		setContainerDefaults(&pod.InitContainers[i])
	}
	for i := range pod.Containers {
		setContainerDefaults(&pod.Containers[i])
	}
	for i := range pod.EphemeralContainers {
		setContainerDefaults((*corev1.Container)(&pod.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

func setContainerDefaults(container *corev1.Container) {
	for i := range container.Ports {
		setIfEmpty(&container.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range container.Env {
		if source := container.Env[i].ValueFrom; source != nil && source.FileKeyRef != nil && source.FileKeyRef.Optional == nil {
			source.FileKeyRef.Optional = ptr.To(false)
		}
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		if probe != nil && probe.GRPC != nil && probe.GRPC.Service == nil {
			probe.GRPC.Service = ptr.To("")
		}
	}
}

func setVolumeDefaults(volume *corev1.Volume) {
	if disk := volume.AzureDisk; disk != nil {
		if disk.FSType == nil {
			disk.FSType = ptr.To("ext4")
		}
		if disk.ReadOnly == nil {
			disk.ReadOnly = ptr.To(false)
		}
	}
	if iscsi := volume.ISCSI; iscsi != nil {
		setIfEmpty(&iscsi.ISCSIInterface, "default")
	}
	if rbd := volume.RBD; rbd != nil {
		setIfEmpty(&rbd.Keyring, "/etc/ceph/keyring")
		setIfEmpty(&rbd.RBDPool, "rbd")
		setIfEmpty(&rbd.RadosUser, "admin")
	}
	if scaleIO := volume.ScaleIO; scaleIO != nil {
		setIfEmpty(&scaleIO.FSType, "xfs")
		setIfEmpty(&scaleIO.StorageMode, "ThinProvisioned")
	}
}

func setIfEmpty[T ~string](text *T, value T) {
	if *text == "" {
		*text = value
	}
}
