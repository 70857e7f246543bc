// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxPort = 65535

func (c *checker) containerOfPod(container *corev1.Container, path *field.Path) {
	c.name(path.Child("name"), container.Name)
	for i := range container.Ports {
		port, p := &container.Ports[i], path.Child("ports").Index(i)
		if n := port.ContainerPort; n < 0 || n > maxPort {
			c.refuse(p.Child("containerPort"), n, "must be from 1 to %d", maxPort)
		}
		if n := port.HostPort; n < 0 || n > maxPort {
			c.refuse(p.Child("hostPort"), n, "must be from 1 to %d", maxPort)
		}
		if port.Name != "" && len(validation.IsValidPortName(port.Name)) > 0 {
			c.refuse(p.Child("name"), port.Name, "must have at most 15 lower-case letters, digits and '-', and at least one letter")
		}
	}
	for i := range container.Env {
		if env := &container.Env[i]; env.Value != "" && env.ValueFrom != nil {
			c.refuse(path.Child("env").Index(i).Child("valueFrom"), field.OmitValueType{}, "must be left out if value is set")
		}
	}
	c.resources(&container.Resources, path.Child("resources"))
}

// resources checks requests and limits, each name in its order.
func (c *checker) resources(resources *corev1.ResourceRequirements, path *field.Path) {
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			c.quantity(name, list.values[name], path.Child(list.name).Key(string(name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(resources.Requests)) {
		request, p := resources.Requests[name], path.Child("requests").Key(string(name))
		limit, limited := resources.Limits[name]
		switch {
		case !limited:
		case request.Cmp(limit) > 0:
			c.refuse(p, request.String(), "must not be greater than the limit, %s", limit.String())
		case whole(name) && request.Cmp(limit) != 0:
			c.refuse(p, request.String(), "must be equal to the limit, %s, because %s cannot be overcommitted", limit.String(), name)
		}
	}
}

func (c *checker) quantity(name corev1.ResourceName, value resource.Quantity, path *field.Path) {
	switch {
	case !known(name):
		c.refuse(path, value.String(), "the name of the resource must be cpu, memory, ephemeral-storage, hugepages-<size>, or have a domain, "+
			"such as nvidia.com/gpu")
	case value.Sign() < 0:
		c.refuse(path, value.String(), "must be 0 or more")
	case extended(name) && value.MilliValue()%1000 != 0:
		c.refuse(path, value.String(), "must be an integer, because %s cannot be divided", name)
	}
}

// known returns whether containers can have a resource of that name.
func known(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return hugePages(name) || len(validation.IsQualifiedName(string(name))) == 0 && strings.Contains(string(name), "/")
}

func hugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// extended returns whether a resource is one of a device.
func extended(name corev1.ResourceName) bool {
	domain, _, qualified := strings.Cut(string(name), "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// whole returns whether a resource must have a limit, and the same request.
func whole(name corev1.ResourceName) bool { return extended(name) || hugePages(name) }

func (c *checker) volumeOfPod(volume *corev1.Volume, path *field.Path) {
	c.name(path.Child("name"), volume.Name)
	var sources []string
	v := reflect.ValueOf(volume.VolumeSource)
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Pointer && !v.Field(i).IsNil() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			sources = append(sources, name)
		}
	}
	if len(sources) > 1 {
		c.refuse(path, field.OmitValueType{}, "must have one source, but has %s", strings.Join(sources, " and "))
	}
}

// name checks the name of a container or a volume. A missing one is reported by the checks of the schema.
func (c *checker) name(path *field.Path, name string) {
	if name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		c.refuse(path, name, "must have at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit")
	}
}

func (c *checker) labels(labels map[string]string, path *field.Path) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if len(validation.IsQualifiedName(key)) > 0 {
			c.key(path, key)
		}
		if value := labels[key]; len(validation.IsValidLabelValue(value)) > 0 {
			c.refuse(path.Key(key), value, "must have at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit")
		}
	}
}

func (c *checker) annotations(annotations map[string]string, path *field.Path) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			c.key(path, key)
		}
	}
}

func (c *checker) key(path *field.Path, key string) {
	c.refuse(path, key, "keys must have at most 63 letters, digits, '-', '_' and '.', after an optional domain, such as example.com/team")
}
