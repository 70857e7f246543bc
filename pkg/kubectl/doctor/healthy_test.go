// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/version"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/authority"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/selfcheck"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// installation is a cluster in which all is well, in parts that a fault may change.
type installation struct {
	cluster
	service             *corev1.Service
	server, manager     *corev1.Pod
	slice               *discoveryv1.EndpointSlice
	lease               *coordinationv1.Lease
	flows               []*flowcontrolv1.FlowSchema
	health              *selfcheck.Document
	registered          []*unstructured.Unstructured
	webhook             runtime.Object
	record              []runtime.Object
	policies            []runtime.Object
	withoutSlice, blind bool
}

func healthy(t *testing.T) *installation {
	t.Helper()
	labels := map[string]string{nameLabel: serverName}
	i := &installation{
		service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: serverName, Labels: labels}, Spec: corev1.ServiceSpec{
			Selector: labels, Ports: []corev1.ServicePort{{Name: "https", Port: 443}},
		}},
		server: readyPod("server-0", serverName), manager: readyPod("manager-x", controllerName),
		slice: &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: serverName}},
			Ports:      []discoveryv1.EndpointPort{{Port: ptr.To[int32](8443)}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.7"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		},
		lease: &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: helper.ControllerLease, Labels: helper.ControllerGateLabels(map[string]bool{"ElasticJobSet": true, "SequentialJobWorkload": true})},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To(helper.ControllerIdentity("manager-x", "u", version.Get().GitVersion)), RenewTime: ptr.To(metav1.NowMicro()), LeaseDurationSeconds: ptr.To[int32](15),
			},
		},
		webhook: podWebhook(unchanged), record: record(t, witness.Record{}),
	}
	for name, level := range map[string]string{"jobset-apiserver-delegated": "exempt", "jobset-controller": "workload-high", "jobset-controller-leader-election": "leader-election"} {
		i.flows = append(i.flows, flowSchema(name, level))
	}
	ca, chain := chainFor(t, 90*24*time.Hour, serverName+".jobset-system.svc", serverName+"-webhook.jobset-system.svc")
	i.health = &selfcheck.Document{
		Server: "server-0", Version: version.Get().GitVersion, Time: metav1.NowMicro(), Certificate: chain, FeatureGates: map[string]bool{"ElasticJobSet": true, "SequentialJobWorkload": false},
		Etcd: []selfcheck.Member{{Endpoint: "https://etcd-0:2379", Version: "3.7.3", SizeBytes: 900 << 20, InUseBytes: 400 << 20, QuotaBytes: 2048 << 20, LatencyMicroseconds: 3000}},
	}
	for _, object := range all("True", "Passed", "") {
		i.registered = append(i.registered, object.(*unstructured.Unstructured))
	}
	i.trust(ca)
	return i
}

// trust makes kube-apiserver trust an authority.
func (i *installation) trust(ca string) {
	for _, s := range i.registered {
		_ = unstructured.SetNestedField(s.Object, base64.StdEncoding.EncodeToString([]byte(ca)), "spec", "caBundle")
	}
	configuration := podWebhook(unchanged)
	configuration.Webhooks[1].ClientConfig.CABundle = []byte(ca)
	i.webhook = configuration
}

func flowSchema(name, level string) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: []flowcontrolv1.Subject{{
			Kind: "ServiceAccount", ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: "jobset-system", Name: "x"},
		}}}},
	}}
}

func readyPod(name, program string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "jobset-system", Name: name, Labels: map[string]string{nameLabel: program}, CreationTimestamp: metav1.Now()},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// chainFor returns an authority, and a certificate for names that ends after some time, signed by it.
func chainFor(t *testing.T, left time.Duration, names ...string) (ca, chain string) {
	t.Helper()
	begin := time.Now().Add(-80 * 24 * time.Hour)
	top, err := authority.New(certutil.Config{CommonName: "authority", NotBefore: begin}, time.Now().Add(left+time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	config := certutil.Config{CommonName: names[0], NotBefore: begin, AltNames: certutil.AltNames{DNSNames: names}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	pair, err := top.Issue(config, time.Now().Add(left))
	if err != nil {
		t.Fatal(err)
	}
	encode := func(c *x509.Certificate) string {
		content, err := certutil.EncodeCertificates(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	return encode(top.Certificate), encode(pair.Certificate)
}

// unavailable makes kube-apiserver complain about the server.
func (i *installation) unavailable(reason, message string) {
	for index := range i.registered {
		i.alone(index, reason, message)
	}
	i.blind = true
}

// alone makes kube-apiserver complain about one group.
func (i *installation) alone(index int, reason, message string) {
	conditions := []any{map[string]any{"type": "Available", "status": "False", "reason": reason, "message": message}}
	_ = unstructured.SetNestedSlice(i.registered[index].Object, conditions, "status", "conditions")
}

// built is the cluster with the parts as they are now.
func (i *installation) built(t *testing.T) cluster {
	t.Helper()
	c := i.cluster
	for _, s := range i.registered {
		c.services = append(c.services, s)
	}
	c.objects = append(append(c.objects, i.record...), i.policies...)
	for _, flow := range i.flows {
		c.objects = append(c.objects, flow)
	}
	if i.service != nil {
		c.objects = append(c.objects, i.service)
	}
	if i.server != nil {
		c.objects = append(c.objects, i.server)
	}
	if i.manager != nil {
		c.objects = append(c.objects, i.manager)
	}
	if !i.withoutSlice {
		c.objects = append(c.objects, i.slice)
	}
	if i.lease != nil {
		c.objects = append(c.objects, i.lease)
	}
	if i.webhook != nil {
		c.objects = append(c.objects, i.webhook)
	}
	i.answer(t, &c)
	return c
}

// answer lets the server say how it is, unless a fault says something else.
func (i *installation) answer(t *testing.T, c *cluster) {
	t.Helper()
	if c.answers == nil {
		c.answers = map[string]answer{}
	}
	if _, set := c.answers[healthPath]; !set {
		c.answers[healthPath] = answer{code: http.StatusServiceUnavailable, body: []byte(`{"kind":"Status","reason":"ServiceUnavailable","message":"away"}`)}
		if !i.blind {
			body, err := json.Marshal(i.health)
			if err != nil {
				t.Fatal(err)
			}
			c.answers[healthPath] = answer{code: http.StatusOK, body: body}
		}
	}
}
