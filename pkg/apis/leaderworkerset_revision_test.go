// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

const groupYAML = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: leaderworkerset-sample
  namespace: default
spec:
  replicas: 3
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers:
        - name: nginx
          image: nginxinc/nginx-unprivileged:1.27
          resources:
            limits:
              cpu: "100m"
            requests:
              cpu: "50m"
          ports:
          - containerPort: 8080
`

// The bytes of the sample, which the released upstream hashes to the key of every revision of it.
const samplePayload = `{"spec":{"leaderWorkerTemplate":{"$patch":"replace","restartPolicy":"RecreateGroupOnPodRestart","size":4,"workerTemplate":{"metadata":{},` +
	`"spec":{"containers":[{"image":"nginxinc/nginx-unprivileged:1.27","name":"nginx","ports":[{"containerPort":8080,"protocol":"TCP"}],` +
	`"resources":{"limits":{"cpu":"100m"},"requests":{"cpu":"50m"}}}]}}},"networkConfig":{"$patch":"replace","subdomainPolicy":"Shared"}}}`

func sampleSet(t *testing.T, change func(*leaderworkersetv1.LeaderWorkerSet)) *leaderworkersetv1.LeaderWorkerSet {
	t.Helper()
	set := &leaderworkersetv1.LeaderWorkerSet{}
	if err := yaml.UnmarshalStrict([]byte(groupYAML), set); err != nil {
		t.Fatal(err)
	}
	leaderworkersetv1.SetObjectDefaults_LeaderWorkerSet(set)
	if change != nil {
		change(set)
	}
	return set
}

func payloadOf(t *testing.T, set *leaderworkersetv1.LeaderWorkerSet) string {
	t.Helper()
	data, err := helper.RevisionPayload(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRevisionPayloadHasTheBytesOfUpstream(t *testing.T) {
	set := sampleSet(t, nil)
	got := payloadOf(t, set)
	if diff := cmp.Diff(samplePayload, got); diff != "" {
		t.Error(diff)
	}
	if key := helper.RevisionKey([]byte(got)); key != "6859c84d69" {
		t.Errorf("key %s", key)
	}
	if name := helper.RevisionName(set.Name, "6859c84d69", 1); name != "leaderworkerset-sample-6859c84d69-1" {
		t.Errorf("name %s", name)
	}
	if name := helper.RevisionName(strings.Repeat("a", 230), "k", 12); name != strings.Repeat("a", 220)+"-k-12" {
		t.Errorf("name %s", name)
	}
}

func TestRevisionPayloadWritesEmptyStructs(t *testing.T) {
	set := sampleSet(t, func(set *leaderworkersetv1.LeaderWorkerSet) {
		c := &set.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0]
		c.Resources = corev1.ResourceRequirements{}
		c.Ports = nil
		c.Args = []string{"<&>"}
		set.Spec.LeaderWorkerTemplate.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	})
	got := payloadOf(t, set)
	for _, want := range []string{
		`"metadata":{}`, `"name":"nginx","resources":{}}`, `"volumeClaimTemplates":[{"metadata":{"name":"a"},"spec":{"resources":{}},"status":{}}]`, `["\u003c\u0026\u003e"]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestRevisionPayloadHoldsWhatRolls(t *testing.T) {
	for name, change := range map[string]func(*leaderworkersetv1.LeaderWorkerSet){
		"the template": func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Spec.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers[0].Image = "b"
		},
		"leader template": func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Spec.LeaderWorkerTemplate.LeaderTemplate = &corev1.PodTemplateSpec{}
		},
		"the size": func(s *leaderworkersetv1.LeaderWorkerSet) { s.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](5) },
		"the restart policy": func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Spec.LeaderWorkerTemplate.RestartPolicy = leaderworkersetv1.RestartPolicyNone
		},
		"the subdomain": func(s *leaderworkersetv1.LeaderWorkerSet) {
			s.Spec.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
		},
	} {
		if set := sampleSet(t, change); payloadOf(t, set) == samplePayload || helper.SameRevision(set, []byte(samplePayload)) {
			t.Errorf("%s does not roll", name)
		}
	}
	same := sampleSet(t, func(s *leaderworkersetv1.LeaderWorkerSet) {
		s.Spec.Replicas, s.Spec.StartupPolicy, s.Spec.Paused = ptr.To[int32](9), leaderworkersetv1.StartupPolicyLeaderReady, ptr.To(true)
		s.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](3)
		s.Labels = map[string]string{"a": "b"}
	})
	if diff := cmp.Diff(samplePayload, payloadOf(t, same)); diff != "" {
		t.Errorf("what does not roll changes the payload: %s", diff)
	}
}

func TestSameRevisionComparesMeanings(t *testing.T) {
	set := sampleSet(t, nil)
	for name, was := range map[string]string{
		"as it is written now":        samplePayload,
		"with a null creation time":   strings.Replace(samplePayload, `"metadata":{}`, `"metadata":{"creationTimestamp":null}`, 1),
		"without the empty metadata":  strings.Replace(samplePayload, `"metadata":{},`, ``, 1),
		"with another quantity":       strings.Replace(samplePayload, `"100m"`, `"0.1"`, 1),
		"without the default port":    strings.Replace(samplePayload, `,"protocol":"TCP"`, ``, 1),
		"without the network":         strings.Replace(samplePayload, `{"$patch":"replace","subdomainPolicy":"Shared"}`, `null`, 1),
		"with keys in another order":  strings.Replace(samplePayload, `"image":"nginxinc/nginx-unprivileged:1.27","name":"nginx"`, `"name":"nginx","image":"nginxinc/nginx-unprivileged:1.27"`, 1),
		"with a field that was empty": strings.Replace(samplePayload, `"containers":`, `"nodeName":"","containers":`, 1),
	} {
		if !strings.Contains(name, "now") && was == samplePayload {
			t.Errorf("%s: no change", name)
		}
		if !helper.SameRevision(set, []byte(was)) {
			t.Errorf("%s: another revision", name)
		}
	}
	for name, was := range map[string]string{
		"another image": strings.Replace(samplePayload, "1.27", "1.28", 1), "no JSON": "{", "no template": `{"spec":{}}`, "nothing": "",
	} {
		if helper.SameRevision(set, []byte(was)) {
			t.Errorf("%s: the same revision", name)
		}
	}
}

func TestRestoreReplacesWhatRollsOnly(t *testing.T) {
	was := sampleSet(t, nil)
	now := sampleSet(t, func(s *leaderworkersetv1.LeaderWorkerSet) {
		s.Spec.LeaderWorkerTemplate.LeaderTemplate = &corev1.PodTemplateSpec{}
		s.Spec.LeaderWorkerTemplate.GroupSize = ptr.To[int32](2)
		s.Spec.LeaderWorkerTemplate.MaxGroupRestarts = ptr.To[int32](3)
		s.Spec.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainUniquePerReplica)}
		s.Spec.Replicas = ptr.To[int32](7)
	})
	before := now.DeepCopy()
	got, err := helper.Restore(now, []byte(samplePayload))
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(before, now) {
		t.Error("the set was changed")
	}
	want := was.DeepCopy()
	want.Spec.Replicas, want.Spec.LeaderWorkerTemplate.MaxGroupRestarts = now.Spec.Replicas, now.Spec.LeaderWorkerTemplate.MaxGroupRestarts
	want.Spec.NetworkConfig = &leaderworkersetv1.NetworkConfig{SubdomainPolicy: ptr.To(leaderworkersetv1.SubdomainShared)}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Error(diff)
	}
	if got := payloadOf(t, got); got != samplePayload {
		t.Errorf("payload %s", got)
	}
}

func TestIsRevisionKey(t *testing.T) {
	for key, want := range map[string]bool{
		"6859c84d69": true, "9d6f9b7d4": true, helper.RevisionKey(nil): true,
		"": false, "former": false, "6859c84d696": false, "0859c84d69": false, "6859c84-69": false, "9e1316d2ae590d1547fdcd8e941a83be8889e7d4": false,
	} {
		if got := helper.IsRevisionKey(key); got != want {
			t.Errorf("%q: %t", key, got)
		}
	}
}
