// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// groupPod is a leader pod as its StatefulSet creates it.
func groupPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{leaderworkersetv1.SetNameLabelKey: "sample", leaderworkersetv1.WorkerIndexLabelKey: "0"},
			Annotations: map[string]string{leaderworkersetv1.SizeAnnotationKey: "4"},
		},
		Spec: corev1.PodSpec{Subdomain: "sample", Containers: []corev1.Container{{Name: "main", Image: "image", Env: []corev1.EnvVar{
			{Name: "ADDRESS", Value: "$(LWS_LEADER_ADDRESS):8080"}, {Name: "LWS_GROUP_SIZE", Value: "100"},
		}}}},
	}
}

// plainPod is a pod that belongs to no set.
func plainPod(name string) *corev1.Pod {
	pod := groupPod(name)
	pod.Labels, pod.Annotations = nil, nil
	return pod
}

func (e *env) createPod(ctx context.Context, pod *corev1.Pod, options metav1.CreateOptions) (*corev1.Pod, error) {
	return plane.Kube.CoreV1().Pods(e.namespace).Create(ctx, pod, options)
}

// awaitPodWebhook waits until kube-apiserver uses the configuration of the webhook.
func (e *env) awaitPodWebhook(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "kube-apiserver asks the server about pods", func(ctx context.Context) error {
		pod, err := e.createPod(ctx, groupPod("sample-0"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && pod.Labels[leaderworkersetv1.GroupIndexLabelKey] == "" {
			err = fmt.Errorf("the labels are %v", pod.Labels)
		}
		return err
	})
}

func TestPodWebhook(t *testing.T) {
	server := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	e.awaitPodWebhook(t)

	pod, err := e.createPod(t.Context(), groupPod("sample-1"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	env := []corev1.EnvVar{
		{Name: "LWS_LEADER_ADDRESS", Value: "sample-1.sample." + e.namespace}, {Name: "LWS_GROUP_SIZE", Value: "4"}, {Name: "LWS_WORKER_INDEX", Value: "0"},
		{Name: "ADDRESS", Value: "$(LWS_LEADER_ADDRESS):8080"},
	}
	if diff := cmp.Diff(env, pod.Spec.Containers[0].Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if got := pod.Labels[leaderworkersetv1.GroupIndexLabelKey]; got != "1" {
		t.Errorf("the group is %q", got)
	}
	if pod, err = e.createPod(t.Context(), plainPod("plain-1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(pod.Labels) > 0 || len(pod.Spec.Containers[0].Env) != 2 {
		t.Errorf("a pod without the label is changed: %v", pod)
	}
	bad := groupPod("sample-2")
	bad.Annotations = nil
	_, err = e.createPod(t.Context(), bad, metav1.CreateOptions{})
	const want = `admission webhook "mpod.kb.io" denied the request: annotation leaderworkerset.sigs.k8s.io/size must be a number from 1 to 2147483647, there is none`
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("a pod without a size: error is %v, must be Forbidden with %q", err, want)
	}
	e.withoutServer(t)
}

// TestPodWebhookOfKubeAPIServerAlone lets only the certificate call the webhook with which kube-apiserver calls it.
func TestPodWebhookOfKubeAPIServerAlone(t *testing.T) {
	tier.OnRequest(t, "more cases of the webhook")
	server := plane.StartServer(t, append(framework.Embedded(framework.ShortDir(t)), "--pod-webhook-client-names="+framework.WebhookClient)...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	e.awaitPodWebhook(t)
	if code, answer := sendPod(t, server.Anonymous(t)); code != http.StatusUnauthorized {
		t.Errorf("without a certificate: %d, %s", code, answer)
	}
	cert, key, err := plane.FrontProxy.Client("somebody-else")
	if err != nil {
		t.Fatal(err)
	}
	config := server.Anonymous(t)
	config.CertData, config.KeyData = cert, key
	if code, answer := sendPod(t, config); code != http.StatusUnauthorized {
		t.Errorf("with the certificate of somebody else: %d, %s", code, answer)
	}
}

// withoutServer stops the server: pods of sets are refused then, and no others are affected.
func (e *env) withoutServer(t *testing.T) {
	t.Helper()
	e.server.Stop(t)
	_, err := e.createPod(t.Context(), groupPod("sample-3"), metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), `failed calling webhook "mpod.kb.io"`) {
		t.Errorf("without a server, the creation of a pod with the label ends with %v", err)
	}
	if _, err = e.createPod(t.Context(), plainPod("plain-3"), metav1.CreateOptions{}); err != nil {
		t.Errorf("without a server, a pod without the label is refused: %v", err)
	}
	pods := plane.Kube.CoreV1().Pods(e.namespace)
	pod, err := pods.Get(t.Context(), "sample-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Labels["changed"] = "yes"
	if _, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Errorf("without a server, a pod that exists cannot be changed: %v", err)
	}
	if err = pods.Delete(t.Context(), "sample-1", metav1.DeleteOptions{}); err != nil {
		t.Errorf("without a server, a pod that exists cannot be deleted: %v", err)
	}
	if _, err = pods.Get(t.Context(), "sample-3", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod that was refused: %v", err)
	}
}

// TestPodWebhookAnswersAnybody asks the server itself, without an identity, while it refuses its store.
func TestPodWebhookAnswersAnybody(t *testing.T) {
	tier.OnRequest(t, "more cases of the webhook")
	newInstallation(t)
	etcd := plane.StartEtcd(t)
	server := plane.StartServer(t, withWitness(etcd.Flags...)...)
	askAboutPod(t, server)
	key := storedKey{etcd.Client(t), "/registry/jobset-apiserver"}
	key.change(t, func(*witness.Key) *witness.Key { return nil })
	framework.Eventually(t, "the server refuses its store", func(context.Context) error {
		if code, body := server.Get(t, "/apis"); code != http.StatusServiceUnavailable {
			return fmt.Errorf("/apis answers %d: %s", code, body)
		}
		return nil
	})
	askAboutPod(t, server)
	for _, path := range []string{"/mutate--v1-pod/", "/mutate--v1-pod/x", "//mutate--v1-pod"} {
		if code, body := server.Get(t, path); code != http.StatusUnauthorized {
			t.Errorf("%s answers %d: %s", path, code, body)
		}
	}
}

// TestPodsAreCompletedBeforeTheStoreAnswers starts a server, with an empty Secret for its certificate, before its etcd.
func TestPodsAreCompletedBeforeTheStoreAnswers(t *testing.T) {
	tier.OnRequest(t, "waits in real time for what is away")
	m := newManaged(t)
	// An etcd that is killed before it has stored its own membership never serves again.
	if _, err := m.etcd.Client(t).Put(t.Context(), "/test/started", "yes"); err != nil {
		t.Fatal(err)
	}
	m.etcd.Kill()
	server := plane.LaunchServer(t, m.flags...)
	plane.RegisterPort(t, server.Port, nil)
	e := newEnv(t, server, plane.Config)
	e.awaitPodWebhook(t)
	awaitWaiting(t, server, "etcd at "+m.etcd.Endpoint)
	if _, err := e.createPod(t.Context(), groupPod("sample-1"), metav1.CreateOptions{}); err != nil {
		t.Errorf("while etcd is away: %v", err)
	}
	m.etcd.Launch(t)
	m.ready(t, server)
	if _, err := e.createPod(t.Context(), groupPod("sample-2"), metav1.CreateOptions{}); err != nil {
		t.Errorf("while the server serves: %v", err)
	}
}

// askAboutPod sends the question of kube-apiserver about a pod of a set.
func askAboutPod(t *testing.T, server *framework.Server) {
	t.Helper()
	code, answer := sendPod(t, server.Anonymous(t))
	got := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(answer, got); err != nil || code != http.StatusOK || got.Response == nil || !got.Response.Allowed || len(got.Response.Patch) == 0 {
		t.Errorf("answered %d: %s", code, answer)
	}
}

// sendPod sends that question and returns the answer.
func sendPod(t *testing.T, config *rest.Config) (code int, answer []byte) {
	t.Helper()
	object, err := json.Marshal(groupPod("sample-1"))
	if err != nil {
		t.Fatal(err)
	}
	review := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: "default", Operation: admissionv1.Create,
		},
	}
	review.Request.Object.Raw = object
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Post(strings.TrimSuffix(config.Host, "/")+"/mutate--v1-pod", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}
