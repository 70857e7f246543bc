// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/leaderworkerpods"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
)

const (
	sample = "leaderworkerset-sample"
	zone   = "topology.kubernetes.io/zone"
	block  = "cloud.google.com/gce-topology-block"
	group0 = "9e1316d2ae590d1547fdcd8e941a83be8889e7d4"
	group1 = "a3cbc54d7769bc2f4ca9d8b493c21c3533607e4c"
	sub0   = "bbcb8915b3fc422b432777ae177705a012ab13d4"
	sub1   = "b71cdea44c94fd56ff2a33859b69330d4e88cc24"
)

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestOtherPodsAreUntouched(t *testing.T) {
	pod := leader(sample, 0, 4, containers(tpu()))
	delete(pod.Labels, leaderworkersetv1.SetNameLabelKey)
	equal(t, "the pod", pod.DeepCopy(), mutate(t, pod))
}

func TestLabels(t *testing.T) {
	const groupIndex, groupKey = leaderworkersetv1.GroupIndexLabelKey, leaderworkersetv1.GroupKeyLabelKey
	const subIndex, subKey, workerIndex = leaderworkersetv1.SubGroupIndexLabelKey, leaderworkersetv1.SubGroupKeyLabelKey, leaderworkersetv1.WorkerIndexLabelKey
	lw, excluded := leaderworkersetv1.SubGroupPolicyLeaderWorker, leaderworkersetv1.SubGroupPolicyLeaderExcluded
	cases := map[string]struct {
		pod *corev1.Pod
		// want are the labels that are added or changed.
		want map[string]string
	}{
		"leader 0":                       {leader(sample, 0, 4), map[string]string{groupIndex: "0", groupKey: group0}},
		"leader 1":                       {leader(sample, 1, 4), map[string]string{groupIndex: "1", groupKey: group1}},
		"leader with a group of its own": {leader(sample, 1, 4, label(groupIndex, "7"), label(groupKey, "mine")), nil},
		"worker":                         {worker(sample, 0, 3, 4), map[string]string{workerIndex: "3"}},
		"worker with a wrong index":      {worker(sample, 0, 3, 4, label(workerIndex, "2")), map[string]string{workerIndex: "3"}},
		"leader of subgroups":            {leader(sample, 0, 4, subGroups(2, lw)), map[string]string{groupIndex: "0", groupKey: group0, subIndex: "0", subKey: sub0}},
		"excluded leader":                {leader(sample, 0, 5, subGroups(2, excluded)), map[string]string{groupIndex: "0", groupKey: group0}},
		"leader with a subgroup of its own": {
			leader(sample, 0, 4, subGroups(2, lw), label(subIndex, "1")), map[string]string{groupIndex: "0", groupKey: group0},
		},
		"worker 1 of 4 by 2":             {worker(sample, 0, 1, 4, subGroups(2, lw)), map[string]string{workerIndex: "1", subIndex: "0", subKey: sub0}},
		"worker 2 of 4 by 2":             {worker(sample, 0, 2, 4, subGroups(2, lw)), map[string]string{workerIndex: "2", subIndex: "1", subKey: sub1}},
		"worker 2 of 5 by 2":             {worker(sample, 0, 2, 5, subGroups(2, lw)), map[string]string{workerIndex: "2", subIndex: "0", subKey: sub0}},
		"worker 3 of 5 by 2":             {worker(sample, 0, 3, 5, subGroups(2, lw)), map[string]string{workerIndex: "3", subIndex: "1", subKey: sub1}},
		"worker 2 of 5 by 2, excluded":   {worker(sample, 0, 2, 5, subGroups(2, excluded)), map[string]string{workerIndex: "2", subIndex: "0", subKey: sub0}},
		"worker 1 of 3 by 1":             {worker(sample, 0, 1, 3, subGroups(1, excluded)), map[string]string{workerIndex: "1", subIndex: "1", subKey: sub1}},
		"worker with a subgroup already": {worker(sample, 0, 2, 4, subGroups(2, lw), label(subIndex, "9")), map[string]string{workerIndex: "2"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := c.pod.DeepCopy().Labels
			for key, value := range c.want {
				want[key] = value
			}
			equal(t, "labels", want, mutate(t, c.pod).Labels)
		})
	}
}

func TestEnvironment(t *testing.T) {
	cases := map[string]struct {
		pod       *corev1.Pod
		env, want []corev1.EnvVar
	}{
		"leader": {leader(sample, 1, 4), nil, []corev1.EnvVar{
			env("LWS_LEADER_ADDRESS", sample+"-1.default.default"), env("LWS_GROUP_SIZE", "4"), env("LWS_WORKER_INDEX", "0"),
		}},
		"worker": {worker(sample, 1, 3, 4), nil, []corev1.EnvVar{
			env("LWS_LEADER_ADDRESS", sample+"-1.default.default"), env("LWS_GROUP_SIZE", "4"), env("LWS_WORKER_INDEX", "3"),
		}},
		"variables of the user follow in order, without later ones of the same name": {
			worker(sample, 1, 3, 4),
			[]corev1.EnvVar{env("B", "$(LWS_GROUP_SIZE)"), env("LWS_GROUP_SIZE", "100"), env("A", "1"), env("B", "2"), env("LWS_LEADER_ADDRESS", "x"), env("C", "3"), env("A", "9")},
			[]corev1.EnvVar{
				env("LWS_LEADER_ADDRESS", sample+"-1.default.default"), env("LWS_GROUP_SIZE", "4"), env("LWS_WORKER_INDEX", "3"),
				env("B", "$(LWS_GROUP_SIZE)"), env("A", "1"), env("C", "3"),
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.pod.Spec.Containers = []corev1.Container{{Name: "one", Env: c.env}, {Name: "two", Env: c.env}}
			c.pod.Spec.InitContainers = []corev1.Container{{Name: "init", Env: c.env}}
			c.pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Env: c.env}}}
			pod := mutate(t, c.pod)
			for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				equal(t, container.Name, c.want, container.Env)
			}
			equal(t, "the ephemeral container", c.env, pod.Spec.EphemeralContainers[0].Env)
		})
	}
}

func TestUniquePerReplica(t *testing.T) {
	unique := annotation(leaderworkersetv1.SubdomainPolicyAnnotationKey, string(leaderworkersetv1.SubdomainUniquePerReplica))
	pod := mutate(t, leader(sample, 1, 4, unique))
	equal(t, "the subdomain", sample+"-1", pod.Spec.Subdomain)
	equal(t, "the first variable", env("LWS_LEADER_ADDRESS", sample+"-1."+sample+"-1.default"), pod.Spec.Containers[0].Env[0])
	equal(t, "the subdomain of a worker, which its StatefulSet sets", "default", mutate(t, worker(sample, 1, 1, 4, unique)).Spec.Subdomain)
}

func TestGang(t *testing.T) {
	const name = sample + "-1-" + revision
	volcano, kubernetes := annotation(leaderworkersetv1.GangAnnotationKey, "volcano"), annotation(leaderworkersetv1.GangAnnotationKey, "kubernetes")
	coscheduling, long := annotation(leaderworkersetv1.GangAnnotationKey, "coscheduling"), strings.Repeat("a", 52)
	cases := map[string]struct {
		pod                      *corev1.Pod
		annotated, labeled, spec string
	}{
		"none":                   {pod: leader(sample, 1, 4)},
		"Volcano, leader":        {pod: leader(sample, 1, 4, volcano), annotated: name},
		"Volcano, worker":        {pod: worker(sample, 1, 2, 4, volcano), annotated: name},
		"coscheduling, leader":   {pod: leader(sample, 1, 4, coscheduling), labeled: name},
		"coscheduling, worker":   {pod: worker(sample, 1, 2, 4, coscheduling), labeled: name},
		"coscheduling, labeled":  {pod: leader(sample, 1, 4, coscheduling, label(leaderworkersetv1.CoschedulingLabelKey, "other")), labeled: name},
		"coscheduling, too long": {pod: leader(long, 0, 1, coscheduling), labeled: helper.CoschedulingName(long + "-0-" + revision)},
		"Kubernetes, leader":     {pod: leader(sample, 1, 4, kubernetes), spec: name},
		"Kubernetes, worker":     {pod: worker(sample, 1, 2, 4, kubernetes), spec: name},
		"Volcano, annotated":     {pod: leader(sample, 1, 4, volcano, annotation(leaderworkersetv1.PodGroupNameAnnotationKey, "other")), annotated: name},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			pod := mutate(t, c.pod)
			equal(t, "the annotation", c.annotated, pod.Annotations[leaderworkersetv1.PodGroupNameAnnotationKey])
			equal(t, "the label", c.labeled, pod.Labels[leaderworkersetv1.CoschedulingLabelKey])
			if problems := validation.IsValidLabelValue(c.labeled); len(problems) > 0 {
				t.Errorf("label: %v", problems)
			}
			equal(t, "the scheduling group", c.spec, ptr.Deref(ptr.Deref(pod.Spec.SchedulingGroup, corev1.PodSchedulingGroup{}).PodGroupName, ""))
		})
	}
}

func terms(topology, key, hash string) (together, apart corev1.PodAffinityTerm) {
	in := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{hash}}
	exists := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
	notIn := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{hash}}
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in}}},
		corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exists, notIn}}}
}

func affinity(together, apart []corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{
		PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: together},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: apart},
	}
}

func TestAffinity(t *testing.T) {
	lw, excluded := leaderworkersetv1.SubGroupPolicyLeaderWorker, leaderworkersetv1.SubGroupPolicyLeaderExcluded
	exclusive := annotation(leaderworkersetv1.ExclusiveKeyAnnotationKey, zone)
	subExclusive := func(topology string) change {
		return annotation(leaderworkersetv1.SubGroupExclusiveKeyAnnotationKey, topology)
	}
	given := func(a *corev1.Affinity) change { return func(p *corev1.Pod) { p.Spec.Affinity = a } }
	groupIn, groupOut := terms(zone, leaderworkersetv1.GroupKeyLabelKey, group0)
	subIn, subOut := terms(block, leaderworkersetv1.SubGroupKeyLabelKey, sub0)
	sub1In, sub1Out := terms(block, leaderworkersetv1.SubGroupKeyLabelKey, sub1)
	userIn, userOut := terms(zone, "app", "x")
	hostIn, hostOut := terms("kubernetes.io/hostname", "app", "x")
	type list = []corev1.PodAffinityTerm
	cases := map[string]struct {
		pod  *corev1.Pod
		want *corev1.Affinity
	}{
		"none":                          {leader(sample, 0, 4), nil},
		"an empty topology":             {leader(sample, 0, 4, annotation(leaderworkersetv1.ExclusiveKeyAnnotationKey, "")), nil},
		"leader":                        {leader(sample, 0, 4, exclusive), affinity(list{groupIn}, list{groupOut})},
		"leader of subgroups":           {leader(sample, 0, 4, exclusive, subGroups(2, lw), subExclusive(block)), affinity(list{groupIn, subIn}, list{groupOut, subOut})},
		"leader, only subgroups":        {leader(sample, 0, 4, subGroups(2, lw), subExclusive(block)), affinity(list{subIn}, list{subOut})},
		"excluded leader":               {leader(sample, 0, 5, exclusive, subGroups(2, excluded), subExclusive(block)), affinity(list{groupIn}, list{groupOut})},
		"leader, the same topology":     {leader(sample, 0, 4, exclusive, subGroups(2, lw), subExclusive(zone)), affinity(list{groupIn}, list{groupOut})},
		"worker":                        {worker(sample, 0, 1, 4, exclusive), nil},
		"worker of subgroups":           {worker(sample, 0, 2, 4, exclusive, subGroups(2, lw), subExclusive(block)), affinity(list{sub1In}, list{sub1Out})},
		"both by the user":              {leader(sample, 0, 4, exclusive, given(affinity(list{userIn}, list{userOut}))), affinity(list{userIn}, list{userOut})},
		"only affinity by the user":     {leader(sample, 0, 4, exclusive, given(affinity(list{userIn}, nil))), affinity(list{userIn, groupIn}, list{groupOut})},
		"for other domains by the user": {leader(sample, 0, 4, exclusive, given(affinity(list{hostIn}, list{hostOut}))), affinity(list{hostIn, groupIn}, list{hostOut, groupOut})},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { equal(t, "affinity", c.want, mutate(t, c.pod).Spec.Affinity) })
	}
}

func TestRefusals(t *testing.T) {
	const size, subGroupSize = leaderworkersetv1.SizeAnnotationKey, leaderworkersetv1.SubGroupSizeAnnotationKey
	noGroup := func(p *corev1.Pod) { delete(p.Labels, leaderworkersetv1.GroupIndexLabelKey) }
	cases := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"no size":             {leader(sample, 0, 4, without(size)), "annotation " + size + " must be a number from 1 to 2147483647, there is none; pods with the label"},
		"no number":           {leader(sample, 0, 4, annotation(size, "four")), `annotation ` + size + ` must be a number from 1 to 2147483647, it is "four"`},
		"a size of 0":         {leader(sample, 0, 4, annotation(size, "0")), `it is "0"`},
		"a large size":        {leader(sample, 0, 4, annotation(size, "2147483648")), `it is "2147483648"`},
		"no set":              {leader("", 0, 4), "label leaderworkerset.sigs.k8s.io/name must be the name of a LeaderWorkerSet, it is empty"},
		"leader, no number":   {leader(sample, 0, 4, named("sample")), `must end with - and its number, as a StatefulSet names it; it is "sample"`},
		"leader, no name":     {leader(sample, 0, 4, named("")), `it is ""`},
		"leader, too high":    {leader(sample, 0, 4, named("sample-4294967296")), `it is "sample-4294967296"`},
		"worker, no number":   {worker(sample, 0, 1, 4, named("sample-a")), `it is "sample-a"`},
		"worker, no group":    {worker(sample, 0, 1, 4, noGroup), "label leaderworkerset.sigs.k8s.io/group-index must be the index of the group, there is none"},
		"subgroup size":       {leader(sample, 0, 4, subGroups(0, "")), `annotation ` + subGroupSize + ` must be a number from 1 to 2147483647, it is "0"`},
		"worker subgroup":     {worker(sample, 0, 1, 4, annotation(subGroupSize, "-1")), `it is "-1"`},
		"unknown gang":        {leader(sample, 0, 4, annotation(leaderworkersetv1.GangAnnotationKey, "mine")), `must be volcano, coscheduling or kubernetes, it is "mine"`},
		"gang, no revision":   {leader(sample, 0, 4, annotation(leaderworkersetv1.GangAnnotationKey, "volcano"), label(leaderworkersetv1.RevisionKey, "")), `they are "0" and ""`},
		"excluded TPU leader": {leader(sample, 0, 5, subGroups(2, leaderworkersetv1.SubGroupPolicyLeaderExcluded), containers(tpu())), "with the policy LeaderExcluded, the leader must not request TPUs"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := leaderworkerpods.Mutate(c.pod, "default")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error is %v, must contain %q", err, c.want)
			}
		})
	}
}
