// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *checker) probe(probe *corev1.Probe, path *field.Path) {
	if probe == nil {
		return
	}
	c.httpGet(probe.HTTPGet, path.Child("httpGet"))
	c.tcpSocket(probe.TCPSocket, path.Child("tcpSocket"))
	if probe.GRPC != nil {
		c.present(path.Child("grpc", "port"), probe.GRPC.Port != 0)
	}
}

// lifecycleHandler leaves sleep.seconds alone: 0 is a legal time to sleep.
func (c *checker) lifecycleHandler(handler *corev1.LifecycleHandler, path *field.Path) {
	if handler == nil {
		return
	}
	c.httpGet(handler.HTTPGet, path.Child("httpGet"))
	c.tcpSocket(handler.TCPSocket, path.Child("tcpSocket"))
}

// httpGet leaves the value of a header alone: an empty header is legal.
func (c *checker) httpGet(action *corev1.HTTPGetAction, path *field.Path) {
	if action == nil {
		return
	}
	c.present(path.Child("port"), action.Port != intstr.IntOrString{})
	for i := range action.HTTPHeaders {
		c.text(path.Child("httpHeaders").Index(i).Child("name"), action.HTTPHeaders[i].Name)
	}
}

func (c *checker) tcpSocket(action *corev1.TCPSocketAction, path *field.Path) {
	if action != nil {
		c.present(path.Child("port"), action.Port != intstr.IntOrString{})
	}
}
