// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/text"
)

var (
	reviewType = metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}
	podKind    = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pods       = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// maxMessage bounds what a refusal says, in bytes: it quotes the pod.
const maxMessage = 1024

// decode reads a question about the creation of a pod. Any other is an error of whoever has configured the webhook.
func decode(data []byte) (*admissionv1.AdmissionReview, *corev1.Pod, error) {
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(data, review); err != nil {
		return nil, nil, bad(http.StatusBadRequest, "the body must be an AdmissionReview in JSON")
	}
	request := review.Request
	if review.TypeMeta != reviewType || request == nil || request.UID == "" {
		return nil, nil, bad(http.StatusBadRequest, "the body must be an AdmissionReview of admission.k8s.io/v1 with a request that has a uid")
	}
	if request.Kind != podKind || request.Resource != pods || request.SubResource != "" || request.Operation != admissionv1.Create {
		return nil, nil, bad(http.StatusBadRequest, "the request must be about the creation of a pod: correct the rules of the "+
			"MutatingWebhookConfiguration")
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return nil, nil, bad(http.StatusBadRequest, "the object of the request must be a pod in JSON")
	}
	return review, pod, nil
}

// refuse is the answer for a pod that must not be created.
func refuse(request *admissionv1.AdmissionRequest, err error) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{UID: request.UID, Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: text.TruncateWithEllipsis(text.Printable(err.Error()), maxMessage),
	}}
}

// refusals logs refusals, but not more than a log can take: anybody can cause them.
type refusals struct {
	limit flowcontrol.PassiveRateLimiter
}

func newRefusals() *refusals {
	return &refusals{limit: flowcontrol.NewTokenBucketPassiveRateLimiter(5, 100)}
}

func (r *refusals) log(ctx context.Context, request *admissionv1.AdmissionRequest, err error) {
	if !r.limit.TryAccept() {
		return
	}
	pod := klog.KRef(shorten(request.Namespace), shorten(request.Name))
	klog.FromContext(ctx).Info("Refused to create a pod", "pod", pod, "reason", text.TruncateWithEllipsis(text.Line(err.Error()), maxMessage))
}

// shorten bounds a name of a request, which was not validated.
func shorten(name string) string { return text.TruncateWithEllipsis(text.Line(name), 253) }
