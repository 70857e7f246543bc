// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/controller/host/children"
)

var _ children.Client[*corev1.Pod] = Client[*corev1.Pod]{}

func TestClient(t *testing.T) {
	denied := errors.New("denied")
	w, server := NewWorld(NewDice(1, 1), nil), &Server{Refusals: map[string]error{}}
	pods := NewResource[*corev1.Pod](w, server, "pod")
	pods.Stays = func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }
	client := Client[*corev1.Pod]{Resource: pods, Sender: w.NewSender(func() {}), Own: func(pod *corev1.Pod) bool { return pod.Labels["own"] != "" }}
	ctx := t.Context()

	server.Refusals["create pod"] = denied
	mine := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: map[string]string{"own": "x", "other": "y"}}, Spec: corev1.PodSpec{NodeName: "n"}}
	if _, err := client.Create(ctx, mine, metav1.CreateOptions{}); !errors.Is(err, denied) {
		t.Errorf("creating a pod that is refused: %v", err)
	}
	delete(server.Refusals, "create pod")
	created, err := client.Create(ctx, mine, metav1.CreateOptions{})
	if err != nil || created.UID == "" || created.ResourceVersion == "" {
		t.Fatalf("created %+v, %v", created, err)
	}
	if _, err := client.Create(ctx, mine, metav1.CreateOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("creating a pod again: %v", err)
	}
	patched, err := client.Patch(ctx, "mine", types.MergePatchType, []byte(`{"metadata":{"labels":{"other":null}}}`), metav1.PatchOptions{})
	if err != nil || len(patched.Labels) != 1 {
		t.Errorf("patched to %v, %v", patched.Labels, err)
	}
	if _, err := client.Patch(ctx, "mine", types.StrategicMergePatchType, []byte(`{"metadata":{"uid":"another"}}`), metav1.PatchOptions{}); !errors.Is(err, ErrConflict) {
		t.Errorf("patching another pod of the name: %v", err)
	}
	if _, err := client.Update(ctx, created, metav1.UpdateOptions{}); !errors.Is(err, ErrConflict) {
		t.Errorf("updating an old version: %v", err)
	}
	if got := [2]int{client.Sender.Accepted, client.Sender.Refused}; got != [2]int{2, 2} {
		t.Errorf("%v requests were accepted and refused", got)
	}
	if err := client.Delete(ctx, "mine", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if pod, found := pods.Store.Get("mine"); !found || pod.DeletionTimestamp == nil {
		t.Errorf("the pod that stays is %v", pod)
	}
	pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	broken := Guarded(func() { _ = client.Delete(ctx, "other", metav1.DeleteOptions{}) })
	if !strings.Contains(broken, RuleOthers) {
		t.Errorf("deleting the pod of another owner breaks %q", broken)
	}
}
