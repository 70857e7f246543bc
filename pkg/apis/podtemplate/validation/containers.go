// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *checker) containers(containers []corev1.Container, path *field.Path) {
	for i := range containers {
		c.container(&containers[i], path.Index(i))
	}
	unique(c, path, containers, func(container *corev1.Container) string { return container.Name })
}

// ephemeralContainers have the schema of containers.
func (c *checker) ephemeralContainers(containers []corev1.EphemeralContainer, path *field.Path) {
	for i := range containers {
		container := corev1.Container(containers[i].EphemeralContainerCommon)
		c.container(&container, path.Index(i))
	}
	unique(c, path, containers, func(container *corev1.EphemeralContainer) string { return container.Name })
}

func (c *checker) container(container *corev1.Container, path *field.Path) {
	c.text(path.Child("name"), container.Name)
	c.ports(container.Ports, path.Child("ports"))
	for i := range container.Env {
		c.envVar(&container.Env[i], path.Child("env").Index(i))
	}
	unique(c, path.Child("env"), container.Env, func(e *corev1.EnvVar) string { return e.Name })
	c.mounts(container, path)
	c.resourceClaims(container.Resources.Claims, path.Child("resources", "claims"))
	c.restartRules(container, path)
	c.probe(container.LivenessProbe, path.Child("livenessProbe"))
	c.probe(container.ReadinessProbe, path.Child("readinessProbe"))
	c.probe(container.StartupProbe, path.Child("startupProbe"))
	if lifecycle := container.Lifecycle; lifecycle != nil {
		c.lifecycleHandler(lifecycle.PostStart, path.Child("lifecycle", "postStart"))
		c.lifecycleHandler(lifecycle.PreStop, path.Child("lifecycle", "preStop"))
	}
	if sc := container.SecurityContext; sc != nil {
		c.profiles(sc.SeccompProfile, sc.AppArmorProfile, path.Child("securityContext"))
	}
}

func (c *checker) ports(ports []corev1.ContainerPort, path *field.Path) {
	for i := range ports {
		c.present(path.Index(i).Child("containerPort"), ports[i].ContainerPort != 0)
	}
	unique(c, path, ports, func(p *corev1.ContainerPort) string { return fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol) })
}

func (c *checker) envVar(env *corev1.EnvVar, path *field.Path) {
	c.text(path.Child("name"), env.Name)
	source := env.ValueFrom
	if source == nil {
		return
	}
	from := path.Child("valueFrom")
	if source.ConfigMapKeyRef != nil {
		c.text(from.Child("configMapKeyRef", "key"), source.ConfigMapKeyRef.Key)
	}
	if source.SecretKeyRef != nil {
		c.text(from.Child("secretKeyRef", "key"), source.SecretKeyRef.Key)
	}
	c.fieldRef(source.FieldRef, from.Child("fieldRef"))
	c.resourceFieldRef(source.ResourceFieldRef, from.Child("resourceFieldRef"))
	if file := source.FileKeyRef; file != nil {
		c.text(from.Child("fileKeyRef", "key"), file.Key)
		c.text(from.Child("fileKeyRef", "path"), file.Path)
		c.text(from.Child("fileKeyRef", "volumeName"), file.VolumeName)
	}
}

func (c *checker) fieldRef(ref *corev1.ObjectFieldSelector, path *field.Path) {
	if ref != nil {
		c.text(path.Child("fieldPath"), ref.FieldPath)
	}
}

func (c *checker) resourceFieldRef(ref *corev1.ResourceFieldSelector, path *field.Path) {
	if ref != nil {
		c.text(path.Child("resource"), ref.Resource)
	}
}

func (c *checker) mounts(container *corev1.Container, path *field.Path) {
	mounts, devices := path.Child("volumeMounts"), path.Child("volumeDevices")
	for i := range container.VolumeMounts {
		c.text(mounts.Index(i).Child("mountPath"), container.VolumeMounts[i].MountPath)
		c.text(mounts.Index(i).Child("name"), container.VolumeMounts[i].Name)
	}
	unique(c, mounts, container.VolumeMounts, func(m *corev1.VolumeMount) string { return m.MountPath })
	for i := range container.VolumeDevices {
		c.text(devices.Index(i).Child("devicePath"), container.VolumeDevices[i].DevicePath)
		c.text(devices.Index(i).Child("name"), container.VolumeDevices[i].Name)
	}
	unique(c, devices, container.VolumeDevices, func(d *corev1.VolumeDevice) string { return d.DevicePath })
}

func (c *checker) resourceClaims(claims []corev1.ResourceClaim, path *field.Path) {
	for i := range claims {
		c.text(path.Index(i).Child("name"), claims[i].Name)
	}
	unique(c, path, claims, func(claim *corev1.ResourceClaim) string { return claim.Name })
}

func (c *checker) restartRules(container *corev1.Container, path *field.Path) {
	for i := range container.ResizePolicy {
		policy, p := &container.ResizePolicy[i], path.Child("resizePolicy").Index(i)
		c.text(p.Child("resourceName"), string(policy.ResourceName))
		c.text(p.Child("restartPolicy"), string(policy.RestartPolicy))
	}
	for i := range container.RestartPolicyRules {
		rule, p := &container.RestartPolicyRules[i], path.Child("restartPolicyRules").Index(i)
		c.text(p.Child("action"), string(rule.Action))
		if rule.ExitCodes != nil {
			c.text(p.Child("exitCodes", "operator"), string(rule.ExitCodes.Operator))
		}
	}
}
