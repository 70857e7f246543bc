// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

// rules are rules of a webhook for resources, as <group>/<resource>.
func rules(of ...[2]string) (all []admissionregistrationv1.RuleWithOperations) {
	for _, r := range of {
		all = append(all, admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{APIGroups: []string{r[0]}, Resources: []string{r[1]}}})
	}
	return all
}

func validatingHook(name, service string, rules []admissionregistrationv1.RuleWithOperations) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "v", Rules: rules,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "up", Name: service}},
		}},
	}
}

// TestFindHooks checks that webhooks of the other controllers are found, and those of queues, policies and jobset-apiserver are not.
func TestFindHooks(t *testing.T) {
	sets, jobs, pods := [2]string{"jobset.x-k8s.io", "jobsets"}, [2]string{"batch", "jobs"}, [2]string{"", "pods"}
	for name, tc := range map[string]struct {
		rules []admissionregistrationv1.RuleWithOperations
		found bool
	}{
		"sets":               {rules(sets), true},
		"sets and pods":      {rules(sets, pods), true},
		"evictions of pods":  {rules(sets, [2]string{"", "pods/eviction"}), true},
		"sets and Jobs":      {rules(sets, jobs), false},
		"sets and Services":  {rules(sets, [2]string{"", "services"}), false},
		"everything":         {rules([2]string{"*", "*"}), false},
		"pods":               {rules(pods), false},
		"sets of another":    {rules([2]string{"leaderworkerset.x-k8s.io", "leaderworkersets"}), false},
		"no rule whatsoever": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findHooks(t.Context(), fake.NewClientset(validatingHook("v", "hooks", tc.rules)), []string{"jobset.x-k8s.io"})
			if err != nil || (len(got) == 1) != tc.found {
				t.Fatalf("found %v, %v", got, err)
			}
			if tc.found && (got[0].saved() != "validating.v" || !slices.Equal(got[0].services, []types.NamespacedName{{Namespace: "up", Name: "hooks"}})) {
				t.Errorf("found %s with the services %v", got[0].saved(), got[0].services)
			}
		})
	}
}

// TestControllersAndHooks stops the other controller, removes its webhooks, and restores both.
func TestControllersAndHooks(t *testing.T) {
	labels := map[string]string{"control-plane": "manager"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "up", Name: "manager"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "up", Name: "hooks"}, Spec: corev1.ServiceSpec{Selector: labels}}
	configuration := validatingHook("v", "hooks", rules([2]string{"jobset.x-k8s.io", "jobsets"}))
	kube := fake.NewClientset(deployment, service, configuration)
	found, err := findHooks(t.Context(), kube, []string{"jobset.x-k8s.io"})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	behind, err := deploymentsBehind(t.Context(), kube, found[0].services[0])
	if err != nil || len(behind) != 1 {
		t.Fatalf("Deployments %v, %v", behind, err)
	}
	replicas := map[string]int32{}
	noteReplicas(replicas, behind)
	behind[0].Spec.Replicas = ptr.To[int32](0)
	if noteReplicas(replicas, behind); replicas["up/manager"] != 2 {
		t.Errorf("an attempt that goes on takes %d replicas for those that it had", replicas["up/manager"])
	}
	m := &mover{kube: kube, out: &bytes.Buffer{}, journal: &Journal{Saved: map[string]json.RawMessage{found[0].saved(): found[0].object}}}
	if err := m.removeHooks(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	api := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := api.Get(t.Context(), "v", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the webhook is there: %v", err)
	}
	for range 2 { // restoring may be repeated
		if err := m.restoreHooks(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if restored, err := api.Get(t.Context(), "v", metav1.GetOptions{}); err != nil || len(restored.Webhooks) != 1 {
		t.Errorf("restored %v, %v", restored, err)
	}
}

// TestPodsWebhook checks when jobset-apiserver is asked about pods of LeaderWorkerSets.
func TestPodsWebhook(t *testing.T) {
	kube := fake.NewClientset(&admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: podsWebhook}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "mpod.kb.io"}},
	})
	m := &mover{kube: kube, subjects: subjects}
	for _, call := range []bool{false, false, true, true, false} {
		if err := m.callPodsWebhook(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		got, err := kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), podsWebhook, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions := got.Webhooks[0].MatchConditions
		if call != (len(conditions) == 0) || !call && (len(conditions) != 1 || conditions[0].Expression != "false") {
			t.Errorf("called: %v, conditions %v", call, conditions)
		}
	}
}

// TestMessages checks the messages about objects that one side does not accept.
func TestMessages(t *testing.T) {
	var results []migration.Result
	g := &given{problems: map[types.NamespacedName]error{}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		results = append(results, migration.Result{Resource: "jobsets.jobset.x-k8s.io", Namespace: "ns", Name: name, Message: "wrong"})
		g.problem(types.NamespacedName{Namespace: "ns", Name: name}, errors.New("wrong"))
	}
	want := "jobsets.jobset.x-k8s.io ns/a (wrong), jobsets.jobset.x-k8s.io ns/b (wrong), jobsets.jobset.x-k8s.io ns/c (wrong), " +
		"jobsets.jobset.x-k8s.io ns/d (wrong), jobsets.jobset.x-k8s.io ns/e (wrong), and 2 more"
	if got := describe(results); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = "jobsets ns/a (wrong), jobsets ns/b (wrong), jobsets ns/c (wrong), jobsets ns/d (wrong), jobsets ns/e (wrong), and 2 more"
	if got := g.describe(subjects[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestCut checks the bounds of one import.
func TestCut(t *testing.T) {
	object := func(bytes int) json.RawMessage { return make(json.RawMessage, bytes) }
	for name, tc := range map[string]struct {
		objects []json.RawMessage
		want    int
	}{
		"few":        {[]json.RawMessage{object(1), object(1)}, 2},
		"many":       {slices.Repeat([]json.RawMessage{object(1)}, migration.MaxObjects+1), migration.MaxObjects},
		"large ones": {slices.Repeat([]json.RawMessage{object(maxBatch/2 + 1)}, 3), 1},
		"too large":  {[]json.RawMessage{object(2 * maxBatch), object(1)}, 1},
	} {
		if batch, rest := cut(tc.objects); len(batch) != tc.want || len(batch)+len(rest) != len(tc.objects) {
			t.Errorf("%s: %d of %d objects, want %d", name, len(batch), len(tc.objects), tc.want)
		}
	}
}
