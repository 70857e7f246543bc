// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/admission/leaderworkerpods"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
)

// hosts returns names of pods: the name of the leader as it is, and the names of workers by their numbers.
func hosts(leader string, withLeader bool, first, last int) string {
	var names []string
	if withLeader {
		names = append(names, leader+".default")
	}
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("%s-%d.default", leader, i))
	}
	return strings.Join(names, ",")
}

func env(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

// want is the environment for TPUs of a container.
type want struct{ names, id, leader, addresses, port string }

func (w want) env() []corev1.EnvVar {
	if w == (want{}) {
		return nil
	}
	vars := []corev1.EnvVar{env("TPU_WORKER_HOSTNAMES", w.names), env("TPU_WORKER_ID", w.id), env("TPU_NAME", w.leader), env("TPU_PROCESS_ADDRESSES", w.addresses)}
	if w.port != "" {
		vars = append(vars, env("TPU_PROCESS_PORT", w.port))
	}
	return vars
}

// one is the environment of the only container on each host, with one port for all.
func one(leader, names, id, port string) want {
	return want{names, id, leader, strings.ReplaceAll(names, ",", ":"+port+",") + ":" + port, port}
}

func TestTPUEnvironment(t *testing.T) {
	const sample, zero = "test-sample-1", "test-sample-0"
	five, workers := hosts(sample, true, 1, 4), hosts(sample, false, 1, 4)
	both := strings.Join([]string{zero + ".default", zero + ".default", zero + "-1.default", zero + "-1.default"}, ",")
	withPort := func(port string) corev1.Container { return tpu(env("TPU_PROCESS_PORT", port)) }
	lw, excluded := leaderworkersetv1.SubGroupPolicyLeaderWorker, leaderworkersetv1.SubGroupPolicyLeaderExcluded
	cases := map[string]struct {
		pod  *corev1.Pod
		want []want
	}{
		"leader":                               {leader("test-sample", 1, 5, containers(tpu())), []want{one(sample, five, "0", "8476")}},
		"worker whose leader requests TPUs":    {worker("test-sample", 1, 3, 5, leaderRequestsTPUs, containers(tpu())), []want{one(sample, five, "3", "8476")}},
		"worker whose leader requests no TPUs": {worker("test-sample", 1, 3, 5, containers(tpu())), []want{one(sample, workers, "2", "8476")}},
		"two containers": {leader("test-sample", 0, 2, containers(tpu(), tpu())), []want{
			{both, "0", zero, zero + ".default:8476," + zero + ".default:8477," + zero + "-1.default:8476," + zero + "-1.default:8477", "8476"},
			{both, "1", zero, zero + ".default:8476," + zero + ".default:8477," + zero + "-1.default:8476," + zero + "-1.default:8477", "8477"},
		}},
		"two containers with ports of their own": {leader("test-sample", 0, 2, containers(withPort("8478"), withPort("8479"))), []want{
			{both, "0", zero, zero + ".default:8478," + zero + ".default:8479," + zero + "-1.default:8478," + zero + "-1.default:8479", ""},
			{both, "1", zero, zero + ".default:8478," + zero + ".default:8479," + zero + "-1.default:8478," + zero + "-1.default:8479", ""},
		}},
		"two containers of a worker": {worker("test-sample", 0, 1, 2, leaderRequestsTPUs, containers(tpu(), tpu())), []want{
			{both, "2", zero, zero + ".default:8476," + zero + ".default:8477," + zero + "-1.default:8476," + zero + "-1.default:8477", "8476"},
			{both, "3", zero, zero + ".default:8476," + zero + ".default:8477," + zero + "-1.default:8476," + zero + "-1.default:8477", "8477"},
		}},
		"first of two containers brings its own": {
			leader("test-sample", 0, 2, containers(tpu(env("TPU_WORKER_ID", "7")), tpu())), []want{{}, {}},
		},
		"second of two containers brings its own": {
			leader("sample", 0, 1, containers(tpu(), tpu(env("TPU_WORKER_ID", "7")))), []want{
				{"sample-0.default,sample-0.default", "0", "sample-0", "sample-0.default:8476,sample-0.default:8477", "8476"},
				{"sample-0.default,sample-0.default", "", "sample-0", "sample-0.default:8476,sample-0.default:8477", "8477"},
			},
		},
		"subgroups, leader": {
			leader("test-sample", 1, 5, subGroups(5, lw), containers(tpu())), []want{one(sample, five, "0", "8476")},
		},
		"subgroups, worker 3 of 10 by 5": {
			worker("test-sample", 1, 3, 10, subGroups(5, lw), leaderRequestsTPUs, containers(tpu())), []want{one(sample, five, "3", "8476")},
		},
		"subgroups, worker 7 of 8 by 4": {
			worker("test-sample", 1, 7, 8, subGroups(4, lw), leaderRequestsTPUs, containers(tpu())),
			[]want{one(sample, hosts(sample, false, 4, 7), "3", "8476")},
		},
		"subgroups, worker 5 of 9 by 4 without TPUs of the leader and a port of its own": {
			worker("test-sample", 1, 5, 9, subGroups(4, lw), containers(withPort("8478"))),
			[]want{{hosts(sample, false, 5, 8), "0", sample, strings.ReplaceAll(hosts(sample, false, 5, 8), ",", ":8478,") + ":8478", ""}},
		},
		"subgroups, worker 7 of 11 by 5 without TPUs of the leader": {
			worker("test-sample", 1, 7, 11, subGroups(5, lw), containers(tpu())), []want{one(sample, hosts(sample, false, 6, 10), "1", "8476")},
		},
		"subgroups, leader excluded": {
			worker("test-sample", 0, 2, 5, subGroups(2, excluded), containers(tpu())), []want{one(zero, hosts(zero, false, 1, 2), "1", "8476")},
		},
		"subgroups of one, worker 1": {
			worker("prefill", 0, 1, 3, subGroups(1, lw), containers(tpu())), []want{one("prefill-0", hosts("prefill-0", false, 1, 1), "0", "8476")},
		},
		"subgroups of one, worker 2, leader with TPUs": {
			worker("prefill", 0, 2, 3, subGroups(1, lw), leaderRequestsTPUs, containers(tpu())),
			[]want{one("prefill-0", hosts("prefill-0", false, 2, 2), "0", "8476")},
		},
		"subgroups, only the first container": {
			leader("test-sample", 1, 5, subGroups(5, lw), containers(tpu(), tpu())), []want{one(sample, five, "0", "8476"), {}},
		},
		"subgroups, excluded leader that brings its own": {
			leader("test-sample", 1, 5, subGroups(2, excluded), containers(tpu(env("TPU_WORKER_HOSTNAMES", "here")))), []want{{}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := c.pod.DeepCopy()
			pod := mutate(t, c.pod)
			for i, container := range pod.Spec.Containers {
				expected := append(container.Env[:3:3], before.Spec.Containers[i].Env...)
				for _, v := range c.want[i].env() {
					if v.Value != "" {
						expected = append(expected, v)
					}
				}
				equal(t, fmt.Sprintf("container %d", i), expected, container.Env)
			}
		})
	}
}

func TestTPUEnvironmentOfInitContainers(t *testing.T) {
	pod := mutate(t, leader("sample", 0, 1, func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{tpu()} }))
	equal(t, "the init container", one("sample-0", "sample-0.default", "0", "8476").env(), pod.Spec.InitContainers[0].Env[3:])
	equal(t, "the container, which requests none", 3, len(pod.Spec.Containers[0].Env))
}

func TestTPUEnvironmentUniquePerReplica(t *testing.T) {
	pod := mutate(t, leader("test-sample", 1, 5, containers(tpu()),
		annotation(leaderworkersetv1.SubdomainPolicyAnnotationKey, string(leaderworkersetv1.SubdomainUniquePerReplica))))
	names := strings.ReplaceAll(hosts("test-sample-1", true, 1, 4), ".default", ".test-sample-1")
	equal(t, "the environment", append([]corev1.EnvVar{
		env("LWS_LEADER_ADDRESS", "test-sample-1.test-sample-1.default"), env("LWS_GROUP_SIZE", "5"), env("LWS_WORKER_INDEX", "0"),
	}, one("test-sample-1", names, "0", "8476").env()...), pod.Spec.Containers[0].Env)
}

func TestTPUEnvironmentIsForContainersThatRequestTPUs(t *testing.T) {
	zero := corev1.ResourceList{"google.com/tpu": resource.MustParse("0")}
	some := corev1.ResourceList{"google.com/tpu": resource.MustParse("1")}
	cases := map[string]struct {
		resources corev1.ResourceRequirements
		want      bool
	}{
		"nothing":                {corev1.ResourceRequirements{}, false},
		"a limit":                {corev1.ResourceRequirements{Limits: some}, true},
		"a request":              {corev1.ResourceRequirements{Requests: some}, true},
		"a limit of 0":           {corev1.ResourceRequirements{Limits: zero, Requests: some}, false},
		"GPUs":                   {corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}, false},
		"a request of 0":         {corev1.ResourceRequirements{Requests: zero}, false},
		"other limits, requests": {corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}, Requests: some}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := mutate(t, leader("sample", 0, 2, containers(corev1.Container{Name: "main", Resources: c.resources})))
			equal(t, "TPU variables", c.want, len(pod.Spec.Containers[0].Env) > 3)
		})
	}
}

func TestTPUEnvironmentIsBounded(t *testing.T) {
	many := make([]corev1.Container, 40)
	for i := range many {
		many[i] = tpu()
	}
	cases := map[string]*corev1.Pod{
		"a group of two billion":     leader("sample", 0, 2_000_000_000, containers(tpu())),
		"a subgroup of two billion":  worker("sample", 0, 1, 4, subGroups(2_000_000_000, leaderworkersetv1.SubGroupPolicyLeaderWorker), containers(tpu())),
		"many containers":            leader("sample", 0, 100, containers(many...)),
		"a port of half a megabyte":  leader("sample", 0, 100, containers(tpu(env("TPU_PROCESS_PORT", strings.Repeat("8", 1<<19))))),
		"a subgroup far from zero":   leader("sample", 0, 4, subGroups(2_000_000_000, ""), label(leaderworkersetv1.SubGroupIndexLabelKey, "2000000000"), containers(tpu())),
		"a subdomain of a megabyte":  leader("sample", 0, 2, containers(tpu()), func(p *corev1.Pod) { p.Spec.Subdomain = strings.Repeat("a", 1<<20) }),
		"a leader name of megabytes": worker("sample", 0, 1, 2, containers(tpu()), annotation(leaderworkersetv1.LeaderPodNameAnnotationKey, strings.Repeat("a", 1<<20))),
	}
	for name, pod := range cases {
		t.Run(name, func(t *testing.T) {
			err := leaderworkerpods.Mutate(pod, "default")
			if err == nil || !strings.Contains(err.Error(), "must have no more than 1048576 bytes") {
				t.Fatalf("must be refused, got %v", err)
			}
		})
	}
	// The largest slices of today have some thousand hosts.
	mutate(t, leader("sample", 0, 8192, containers(tpu())))
}
