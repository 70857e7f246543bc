// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apigroups

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/webhook"
)

// ask sends a question about the creation of a pod.
func ask(t *testing.T, h http.Handler, pod []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	review := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: "default", Operation: admissionv1.Create,
		},
	}
	review.Request.Object.Raw = pod
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	w, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, PodsPath, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, req)
	answer := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil || w.Code != http.StatusOK || answer.Response == nil {
		t.Fatalf("%d: %s\nto %s", w.Code, w.Body, pod)
	}
	return answer.Response
}

// TestRandomPods asks about random pods, most of which are none of a set: each question has an answer, a patch can be
// applied, and asking about the result changes nothing.
func TestRandomPods(t *testing.T) {
	h := webhook.NewHandler(http.NotFoundHandler(), webhook.Callers{}, Webhooks()...)
	dice := rand.New(rand.NewSource(1))
	answers := map[string]int{}
	for range 2000 {
		pod, err := json.Marshal(randomPod(dice))
		if err != nil {
			t.Fatal(err)
		}
		first := ask(t, h, pod)
		switch {
		case !first.Allowed:
			answers["refused"]++
			continue
		case first.Patch == nil:
			answers["unchanged"]++
			continue
		}
		answers["mutated"]++
		patch, err := jsonpatch.DecodePatch(first.Patch)
		if err != nil {
			t.Fatal(err)
		}
		mutated, err := patch.Apply(pod)
		if err != nil {
			t.Fatalf("%v: %s to %s", err, first.Patch, pod)
		}
		if again := ask(t, h, mutated); !again.Allowed || again.Patch != nil {
			t.Fatalf("the second answer is %v %s %v\nfor %s", again.Allowed, again.Patch, again.Result, mutated)
		}
	}
	for _, answer := range []string{"refused", "unchanged", "mutated"} {
		if answers[answer] < 100 {
			t.Errorf("answers are %v: too few of each kind show nothing", answers)
		}
	}
}

// randomPod returns a pod with the names, labels, annotations and containers that matter, each there or not, right or wrong.
func randomPod(dice *rand.Rand) *corev1.Pod {
	number := func() string { return strconv.Itoa(1 + dice.Intn(9)) }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: oneOf(dice, "a-"+number(), "a-0-"+number(), "a", ""), Labels: map[string]string{}, Annotations: map[string]string{}}}
	some(dice, pod.Labels, map[string]string{
		leaderworkersetv1.SetNameLabelKey: "a", leaderworkersetv1.WorkerIndexLabelKey: oneOf(dice, "0", "0", number()), leaderworkersetv1.GroupIndexLabelKey: "0",
		leaderworkersetv1.GroupKeyLabelKey: "k", leaderworkersetv1.RevisionKey: "r", leaderworkersetv1.SubGroupIndexLabelKey: oneOf(dice, "1", "-1", "x"),
	})
	some(dice, pod.Annotations, map[string]string{
		leaderworkersetv1.SizeAnnotationKey: oneOf(dice, "5", "9", "9", "-1", "x"), leaderworkersetv1.SubGroupSizeAnnotationKey: oneOf(dice, "1", "2", "4", "0"),
		leaderworkersetv1.SubGroupPolicyTypeAnnotationKey: oneOf(dice, "LeaderWorker", "LeaderExcluded"), leaderworkersetv1.ExclusiveKeyAnnotationKey: "zone",
		leaderworkersetv1.SubGroupExclusiveKeyAnnotationKey: oneOf(dice, "zone", "block"), leaderworkersetv1.SubdomainPolicyAnnotationKey: "UniquePerReplica",
		leaderworkersetv1.LeaderRequestsTPUsAnnotationKey: "true", leaderworkersetv1.LeaderPodNameAnnotationKey: "a-0",
		leaderworkersetv1.GangAnnotationKey: oneOf(dice, leaderworkersetv1.GangVolcano, leaderworkersetv1.GangKubernetes),
	})
	pod.Labels[leaderworkersetv1.SetNameLabelKey] = "a"
	if dice.Intn(8) == 0 {
		delete(pod.Labels, leaderworkersetv1.SetNameLabelKey)
	}
	pod.Spec.Containers, pod.Spec.InitContainers = randomContainers(dice), randomContainers(dice)
	if dice.Intn(4) == 0 {
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: oneOf(dice, "zone", "block")}},
		}}
	}
	return pod
}

func randomContainers(dice *rand.Rand) []corev1.Container {
	containers := make([]corev1.Container, dice.Intn(3))
	for i := range containers {
		containers[i].Name = oneOf(dice, "x", "y", "")
		for range dice.Intn(5) {
			name := oneOf(dice, "A", "B", "LWS_GROUP_SIZE", "LWS_LEADER_ADDRESS", "TPU_NAME", "TPU_PROCESS_PORT", "TPU_WORKER_ID")
			containers[i].Env = append(containers[i].Env, corev1.EnvVar{Name: name, Value: oneOf(dice, "", "1", "2")})
		}
		if dice.Intn(2) == 0 {
			containers[i].Resources.Requests = corev1.ResourceList{"google.com/tpu": resource.MustParse(oneOf(dice, "0", "4"))}
		}
	}
	return containers
}

func oneOf(dice *rand.Rand, values ...string) string { return values[dice.Intn(len(values))] }

// some sets each of the values with a chance of three in four, in the same order each time.
func some(dice *rand.Rand, target, values map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if dice.Intn(4) > 0 {
			target[key] = values[key]
		}
	}
}

// FuzzPods looks for objects to which the answer is none.
func FuzzPods(f *testing.F) {
	dice := rand.New(rand.NewSource(2))
	for range 50 {
		pod, err := json.Marshal(randomPod(dice))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(pod)
	}
	h := webhook.NewHandler(http.NotFoundHandler(), webhook.Callers{}, Webhooks()...)
	f.Fuzz(func(t *testing.T, pod []byte) {
		var decoded corev1.Pod
		if json.Unmarshal(pod, &decoded) != nil {
			return
		}
		canonical, err := json.Marshal(&decoded)
		if err != nil {
			return
		}
		ask(t, h, canonical)
	})
}
