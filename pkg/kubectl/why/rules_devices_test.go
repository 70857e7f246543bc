// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// unseenByScheduler takes the node and the condition of the scheduler from a pod.
func unseenByScheduler(pod *corev1.Pod) {
	noNode("")(pod)
	pod.Status.Conditions = pod.Status.Conditions[1:]
}

// fromTemplate lets a pod ask for devices by a template.
func fromTemplate(pod *corev1.Pod) {
	unseenByScheduler(pod)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("four-gpus")}}
}

// byClaim lets a pod ask for devices by a claim.
func byClaim(pod *corev1.Pod) {
	unseenByScheduler(pod)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("shared-gpu")}}
}

func deviceTemplate(t *resourcev1.ResourceClaimTemplate) func(*Evidence) {
	return func(e *Evidence) { e.DeviceTemplates = map[string]*resourcev1.ResourceClaimTemplate{"four-gpus": t} }
}

func deviceClaim(c *resourcev1.ResourceClaim) func(*Evidence) {
	return func(e *Evidence) { e.DeviceClaims = map[string]*resourcev1.ResourceClaim{"shared-gpu": c} }
}

func deviceCases() map[string]diagnosisCase {
	exists := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "four-gpus"}}
	return map[string]diagnosisCase{
		"a template of claims for devices is missing": {
			evidence: healthy(pods(fromTemplate), deviceTemplate(nil)), want: DeviceClaimMissing,
			words: []string{"2 pods wait for the ResourceClaimTemplate four-gpus, which does not exist in namespace team", "create it, or correct resourceClaimTemplateName in the set"},
		},
		"a template is missing, and the scheduler says something": {
			evidence: healthy(pods(func(pod *corev1.Pod) { fromTemplate(pod); noNode("waiting for claims")(pod) }), deviceTemplate(nil)), want: DeviceClaimMissing,
			words: []string{"ResourceClaimTemplate four-gpus, which does not exist"},
		},
		"a claim for devices is missing": {
			evidence: healthy(pods(byClaim), deviceClaim(nil)), want: DeviceClaimMissing,
			words: []string{"2 pods wait for the ResourceClaim shared-gpu, which does not exist in namespace team", "create it, or correct resourceClaimName in the set"},
		},
		"a claim of a template is not made": {
			evidence: healthy(pods(fromTemplate), deviceTemplate(exists), warnsOfPod("FailedResourceClaimCreation", "exceeded quota: devices")), want: DeviceClaimMissing,
			words: []string{"2 pods wait for ResourceClaims of the template four-gpus, which kube-controller-manager creates and has not created: exceeded quota: devices"},
		},
		"a claim of a template is not made, and no event says why": {
			evidence: healthy(pods(fromTemplate), deviceTemplate(exists)), want: DeviceClaimMissing,
			words: []string{"which kube-controller-manager creates and has not created: it does not run, or its controller for ResourceClaims is off"},
		},
		"a claim of a template may still be made": {
			evidence: healthy(pods(func(pod *corev1.Pod) { fromTemplate(pod); pod.CreationTimestamp = before(5 * time.Second) }), deviceTemplate(exists)), want: Starting,
		},
		"claims exist, and the scheduler is silent": {
			evidence: healthy(pods(func(pod *corev1.Pod) {
				fromTemplate(pod)
				pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("train-gpu-x")}}
			}), deviceTemplate(exists)), want: SchedulerSilent,
		},
		"a claim was not looked at": {evidence: healthy(pods(byClaim)), want: SchedulerSilent},
		"no node has the devices": {
			evidence: healthy(pods(func(pod *corev1.Pod) {
				byClaim(pod)
				noNode("0/3 nodes are available: 3 cannot allocate all claims.")(pod)
			}), deviceClaim(&resourcev1.ResourceClaim{})),
			want: UnschedulableResources, words: []string{"cannot allocate all claims"},
		},
	}
}

// warnsOfPod is a warning about the first pod.
func warnsOfPod(reason, message string) func(*Evidence) {
	return func(e *Evidence) { warns("Pod", e.Pods[0].UID, reason, message)(e) }
}

func TestLoadReadsClaimsForDevices(t *testing.T) {
	both := func(pod *corev1.Pod) {
		byClaim(pod)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "more", ResourceClaimTemplateName: ptr.To("four-gpus")})
	}
	notServed := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}, "shared-gpu", "", 0, true)
	for name, tc := range map[string]struct {
		refused      error
		exists, read bool
		gap          string
	}{
		"neither exists":       {read: true},
		"both exist":           {exists: true, read: true},
		"forbidden":            {refused: forbidden("resourceclaims"), gap: "forbidden"},
		"the API is off":       {refused: notServed, gap: "not served"},
		"the API has a defect": {refused: errors.New("broken"), gap: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, healthy(pods(both)))
			if tc.exists {
				meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
				if err := errors.Join(w.kube.Tracker().Add(&resourcev1.ResourceClaim{ObjectMeta: meta("shared-gpu")}),
					w.kube.Tracker().Add(&resourcev1.ResourceClaimTemplate{ObjectMeta: meta("four-gpus")})); err != nil {
					t.Fatal(err)
				}
			}
			if tc.refused != nil {
				w.refuses(&w.kube.Fake, "resourceclaims", tc.refused)
				w.refuses(&w.kube.Fake, "resourceclaimtemplates", tc.refused)
			}
			e := w.load(t)
			claim, claimRead := e.DeviceClaims["shared-gpu"]
			made, templateRead := e.DeviceTemplates["four-gpus"]
			if claimRead != tc.read || templateRead != tc.read || (claim != nil) != tc.exists || (made != nil) != tc.exists {
				t.Errorf("claim %v (read: %t), template %v (read: %t)", claim, claimRead, made, templateRead)
			}
			about := func(resource string) bool {
				return slices.ContainsFunc(e.NotLookedAt, func(g Gap) bool { return g.Source == resource && strings.Contains(g.Reason, tc.gap) })
			}
			if found := about("resourceclaims") && about("resourceclaimtemplates"); found != (tc.gap != "") {
				t.Errorf("not looked at: %v", e.NotLookedAt)
			}
		})
	}
}
