// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func amountsText(t *testing.T, a Amounts) string {
	t.Helper()
	out, err := a.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestAmounts(t *testing.T) {
	many := list("cpu", "1", "memory", "1Gi", "pods", "5")
	for i := range 40 {
		many[corev1.ResourceName(fmt.Sprintf("example.com/r%02d", i))] = resource.MustParse("1")
	}
	for name, test := range map[string]struct {
		list corev1.ResourceList
		want string
	}{
		"nothing":         {nil, ""},
		"sorted":          {list("memory", "1Gi", "cpu", "1500m", "nvidia.com/gpu", "8"), "cpu=1500m,memory=1Gi,nvidia.com/gpu=8"},
		"rounded up":      {list("cpu", "1500001u", "memory", "1500m"), "cpu=1501m,memory=2"},
		"less than none":  {list("cpu", "-1"), "cpu=-1"},
		"more than a lot": {list("cpu", "9223372036854775807", "memory", "9223372036854775807"), "cpu=1152921504606846975m,memory=1152921504606846975"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := amountsText(t, NewAmounts(test.list)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	got := NewAmounts(many)
	if len(got.All()) != maxResources {
		t.Errorf("%d resources are kept, want %d", len(got.All()), maxResources)
	}
	if all := amountsText(t, got); all[:len("cpu=1,example.com/r00=1")] != "cpu=1,example.com/r00=1" {
		t.Errorf("the processors are not kept: %s", all)
	}
	if NewAmounts(list("cpu", "1")) != NewAmounts(list("cpu", "1000m")) {
		t.Error("equal amounts differ")
	}
}

func TestNewNode(t *testing.T) {
	got := NewNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"z": "1", "a": "2"}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
			{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule},
			{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		}},
		Status: corev1.NodeStatus{
			Allocatable: list("cpu", "4"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}},
		},
	})
	taint := func(key, value string) Taint { return Taint{NameOf(key), NameOf(value), NameOf("NoSchedule")} }
	want := Node{
		Name: NameOf("n"), Labels: []Label{{NameOf("a"), NameOf("2")}, {NameOf("z"), NameOf("1")}}, Allocatable: NewAmounts(list("cpu", "4")),
		Taints: []Taint{taint("gpu", "yes"), taint(corev1.TaintNodeNotReady, ""), taint(corev1.TaintNodeUnschedulable, "")},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b Name) bool { return a == b }), cmp.Comparer(func(a, b Amounts) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if got := NewNode(&corev1.Node{}); len(got.Taints) != 0 {
		t.Errorf("a node that says nothing has taints: %v", got.Taints)
	}
}

func TestNewPod(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: corev1.PodSpec{
			NodeName: "n", Priority: ptr.To[int32](7), Overhead: list("memory", "64Mi"),
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "2")}}},
		}}
		change(p)
		return p
	}
	for name, test := range map[string]struct {
		change   func(*corev1.Pod)
		set, job string
		want     string
	}{
		"of a set":   {func(*corev1.Pod) {}, "ns/a", "k", "n ns/a k cpu=2,memory=64Mi,pods=1 7"},
		"of nobody":  {func(*corev1.Pod) {}, "", "", "n   cpu=2,memory=64Mi,pods=1 7"},
		"succeeded":  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, "", "", ""},
		"failed":     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, "", "", ""},
		"pending":    {func(p *corev1.Pod) { p.Spec.NodeName = "" }, "", "", ""},
		"nominated":  {func(p *corev1.Pod) { p.Spec.NodeName, p.Status.NominatedNodeName = "", "m" }, "", "", "m   cpu=2,memory=64Mi,pods=1 7"},
		"terminates": {func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }, "", "", "n   cpu=2,memory=64Mi,pods=1 7"},
		"of a DaemonSet": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: ptr.To(true)}}
		}, "", "", "n DaemonSet ns/d  cpu=2,memory=64Mi,pods=1 7"},
	} {
		t.Run(name, func(t *testing.T) {
			p, counts := NewPod(pod(test.change), test.set, test.job)
			got := ""
			if counts {
				got = fmt.Sprintf("%s %s %s %s %d", p.Node, p.Owner, p.Job, amountsText(t, p.Requests), p.Priority)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// BenchmarkMemory reports the bytes that the snapshot of a large cluster takes for each node and pod.
func BenchmarkMemory(b *testing.B) {
	const nodes, pods = 5_000, 50_000
	heap := func() float64 {
		for range 3 { // what is unique goes in steps
			runtime.GC()
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	for b.Loop() {
		before := heap()
		c := &Cluster{Nodes: make([]Node, 0, nodes)}
		for i := range nodes {
			c.Nodes = append(c.Nodes, NewNode(realisticNode(i)))
		}
		middle := heap()
		c.Pods = make([]Pod, 0, pods)
		for i := range pods {
			p, _ := NewPod(realisticPod(i, nodes), fmt.Sprintf("ns/set-%d", i/100), fmt.Sprintf("%040d", i/10))
			c.Pods = append(c.Pods, p)
		}
		after := heap()
		b.ReportMetric((middle-before)/nodes, "B/node")
		b.ReportMetric((after-middle)/pods, "B/pod")
		runtime.KeepAlive(c)
	}
}

// realisticNode has as many labels as cloud providers set.
func realisticNode(i int) *corev1.Node {
	labels := map[string]string{"kubernetes.io/hostname": fmt.Sprintf("node-%d", i), "example.com/instance-id": fmt.Sprintf("i-%016x", i)}
	for k := range 28 {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-cpuid.FLAG-%d", k)] = "true"
	}
	labels["rack"], labels["block"] = fmt.Sprintf("rack-%d", i/16), fmt.Sprintf("block-%d", i/160)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: labels},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Allocatable: list("cpu", "192", "memory", "2Ti", "ephemeral-storage", "1Ti", "pods", "110", "nvidia.com/gpu", "8",
			"hugepages-2Mi", "0", "hugepages-1Gi", "0")},
	}
}

func realisticPod(i, nodes int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("pod-%d", i)},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%nodes), Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: list("cpu", fmt.Sprintf("%dm", i%5*100), "memory", "1Gi")}}}},
	}
}
