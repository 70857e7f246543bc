// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/install"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// goldenSet has two slices, a role that others scale, a placement, and templates with labels, annotations and an affinity of their own.
const goldenSet = `
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSet
metadata: {name: llm, namespace: ml, uid: 0c5f}
spec:
  placementPolicy: {type: ExclusiveTopology, topology: rack}
  roles:
  - name: prefill
    metadata:
      labels: {kueue.x-k8s.io/queue-name: gpus, app: mine}
      annotations: {team: a}
    spec:
      replicas: 4
      rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 25%}}
      startupPolicy: LeaderReady
      networkConfig: {subdomainPolicy: UniquePerReplica}
      leaderWorkerTemplate:
        size: 2
        leaderTemplate:
          metadata: {labels: {tier: leader}}
          spec: {containers: [{name: main, image: router, ports: [{containerPort: 80}]}]}
        workerTemplate:
          metadata: {annotations: {note: kept}}
          spec:
            containers: [{name: main, image: engine}]
            affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {cache: near}}}]}}
  - name: decode
    scaling: {mode: External}
    spec:
      leaderWorkerTemplate:
        restartPolicy: None
        workerTemplate: {spec: {containers: [{name: main, image: engine}]}}
`

// defaulted returns the golden set as the server stores it.
func defaulted(t *testing.T) *disaggregatedsetv1.DisaggregatedSet {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	hub, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDecoder(), []byte(goldenSet))
	if err != nil {
		t.Fatal(err)
	}
	ds := &disaggregatedsetv1.DisaggregatedSet{}
	if err := scheme.Convert(hub, ds, nil); err != nil {
		t.Fatal(err)
	}
	return ds
}

// documents prints objects as one file.
func documents(t *testing.T, objects ...any) string {
	t.Helper()
	out := make([]string, len(objects))
	for i, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(data)
	}
	return strings.Join(out, "---\n")
}

func TestDefaultsAreGolden(t *testing.T) {
	golden.Compare(t, "defaults.yaml", documents(t, defaulted(t).Spec))
}

// Users, autoscalers and the controllers of pods know children by what is in these files.
func TestChildrenAreGolden(t *testing.T) {
	ds := defaulted(t)
	revision := revisionOf(t, ds)
	var all []any
	for i := range ds.Spec.Roles {
		role := &ds.Spec.Roles[i]
		for slice := range int32(2) {
			all = append(all, newChild(ds, role, slice, revision, 3))
		}
		all = append(all, newService(ds, Child{Ref: Ref{Name: helper.SetName(ds.Name, 1, revision, role.Name)}, Role: role.Name, Revision: revision, Slice: 1}))
	}
	all = append(all, newScaler(ds, "decode", 3))
	golden.Compare(t, "children.yaml", documents(t, all...))
}

// A Service of one role and slice must select the leader and worker pods of that role and slice, of its revision, and no others.
func TestServicesSelectTheirPods(t *testing.T) {
	ds := defaulted(t)
	for slice := range int32(2) {
		for _, revision := range []string{"a", "b"} {
			for i := range ds.Spec.Roles {
				child := Child{Ref: Ref{Name: "x"}, Role: ds.Spec.Roles[i].Name, Revision: revision, Slice: slice}
				selector := metav1.LabelSelector{MatchLabels: newService(ds, child).Spec.Selector}
				if got, want := selected(t, ds, selector), child.Role+" "+revision+" "+string(rune('0'+slice)); got != want {
					t.Errorf("%s: selects %q", want, got)
				}
			}
		}
	}
}

// selected lists the templates of pods that a selector selects.
func selected(t *testing.T, ds *disaggregatedsetv1.DisaggregatedSet, selector metav1.LabelSelector) string {
	t.Helper()
	matcher, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var list []string
	for slice := range int32(2) {
		for _, revision := range []string{"a", "b"} {
			for i := range ds.Spec.Roles {
				role := &ds.Spec.Roles[i]
				template := newChild(ds, role, slice, revision, 1).Spec.LeaderWorkerTemplate
				for _, pod := range []*corev1.PodTemplateSpec{template.LeaderTemplate, &template.WorkerTemplate} {
					name := role.Name + " " + revision + " " + string(rune('0'+slice))
					if pod != nil && matcher.Matches(labels.Set(pod.Labels)) && found[name] == 0 {
						list = append(list, name)
						found[name]++
					}
				}
			}
		}
	}
	return strings.Join(list, ", ")
}
