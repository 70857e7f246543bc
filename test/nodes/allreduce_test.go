// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/nodes/program/allreduce"
)

const (
	// stepsPerKill is how far the run gets, on average, from one kill to the next, and stepsAfter what is left after the last one.
	stepsPerKill = 30
	stepsAfter   = 200
)

// allReduce is a run of the example of that name while its workers are killed.
type allReduce struct {
	*env
	dir    string
	random *rand.Rand
	// kills is how many there will be. The times are those from a kill until all pods of the next attempt were ready.
	kills int
	times []time.Duration
	ways  map[string]int
}

// TestAllReduceSurvivesKills runs artifacts/examples/all-reduce.yaml. At random times a worker of random rank gets a
// SIGKILL or its pod is deleted; the sum must be right in the end, and the status must have counted and explained each
// of them. JOBSET_NODES_KILLS is how many there are.
func TestAllReduceSurvivesKills(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(os.Getenv("JOBSET_NODES_KILLS"))
	if err != nil {
		kills = 3
	}
	seed := rand.Uint64()
	t.Logf("%d kills, seed %d", kills, seed)
	r := &allReduce{env: newEnv(t), kills: kills, random: rand.New(rand.NewPCG(seed, 0)), ways: map[string]int{}}
	js := r.example()
	r.create(js)
	r.dir = r.volumeOf("checkpoints-" + js.Name)
	followed := r.follow(js.Name)
	for i := range kills {
		r.kill(js.Name, i)
	}
	line := r.finish(js.Name)
	if logs := followed(); strings.Count(logs, line) != 4 {
		t.Errorf("of those who followed the logs, not all workers say %q:\n%s", line, logs)
	}
}

// example returns the example with as many steps as the kills need.
func (r *allReduce) example() *jobsetv1alpha2.JobSet {
	r.Helper()
	content, err := os.ReadFile(filepath.Join(shared.Root, "artifacts", "examples", "all-reduce.yaml"))
	if err != nil {
		r.Fatal(err)
	}
	var js jobsetv1alpha2.JobSet
	if err := yaml.UnmarshalStrict(content, &js); err != nil {
		r.Fatal(err)
	}
	worker := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
	i := slices.Index(worker.Args, "--steps=600")
	if i < 0 {
		r.Fatalf("no --steps in %q", worker.Args)
	}
	worker.Args[i] = fmt.Sprintf("--steps=%d", r.steps())
	js.Spec.FailurePolicy.MaxRestarts = int32(2 * r.kills) // a kubelet that starves may end a pod, too
	return &js
}

func (r *allReduce) steps() int { return r.kills*stepsPerKill + stepsAfter }

// kill ends a worker once the run has got far enough, and waits until all have been restarted.
func (r *allReduce) kill(name string, number int) {
	r.Helper()
	threshold := number*stepsPerKill + r.random.IntN(stepsPerKill)
	framework.Eventually(r, fmt.Sprintf("the run gets beyond step %d", threshold), func(context.Context) error {
		state, err := allreduce.Checkpoint(r.dir, 64)
		if err == nil && state.Step <= threshold {
			err = fmt.Errorf("it is at step %d", state.Step)
		}
		return err
	})
	pods := r.running(ofSet(name)+","+jobsetv1alpha2.RestartsKey+"="+strconv.Itoa(number), 4)
	victim := pods[r.random.IntN(len(pods))]
	way := []string{"SIGKILL", "delete", "delete at once"}[r.random.IntN(3)]
	began := time.Now()
	if err := r.strike(&victim, way); err != nil {
		r.Fatal(err)
	}
	r.ways[way]++
	js := r.restarted(name, number+1)
	attempt := js.Status.Attempts[len(js.Status.Attempts)-2]
	cause := attempt.FirstCause
	if cause == nil || cause.Job != victim.Labels[batchv1.JobNameLabel] {
		r.Fatalf("%s of %s: the first cause is %+v", way, victim.Name, cause)
	}
	if way == "SIGKILL" && (cause.Pod != victim.Name || cause.Node != victim.Spec.NodeName || cause.Container != "worker" || ptr.Deref(cause.ExitCode, 0) != 137) {
		r.Errorf("%s of %s on %s: the first cause is %+v", way, victim.Name, victim.Spec.NodeName, cause)
	}
	if attempt.Outcome != jobsetv1alpha2.OutcomeRestarted {
		r.Errorf("%s of %s: the attempt has ended as %s", way, victim.Name, attempt.Outcome)
	}
	took := time.Since(began)
	r.times = append(r.times, took)
	r.Logf("%s of %s at step %d or later: all are ready after %.1fs, the first cause is exit code %d of %s", way, victim.Name, threshold, took.Seconds(),
		ptr.Deref(cause.ExitCode, -1), cause.Pod)
}

func (r *allReduce) strike(victim *corev1.Pod, way string) error {
	switch way {
	case "SIGKILL":
		return kill(victim.Status.ContainerStatuses[0])
	case "delete":
		return core.CoreV1().Pods(r.namespace).Delete(r.Context(), victim.Name, metav1.DeleteOptions{})
	}
	return core.CoreV1().Pods(r.namespace).Delete(r.Context(), victim.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

// restarted waits until the set has been restarted that often and all of its Jobs are ready.
func (r *allReduce) restarted(name string, restarts int) (js *jobsetv1alpha2.JobSet) {
	r.Helper()
	framework.Eventually(r, fmt.Sprintf("restart %d is ready", restarts), func(ctx context.Context) (err error) {
		if js, err = jobsets.JobsetV1alpha2().JobSets(r.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		n := len(js.Status.Attempts)
		if int(js.Status.Restarts) < restarts || n < 2 || js.Status.Attempts[n-1].ReadyTime == nil {
			return fmt.Errorf("%d restarts, attempts %+v", js.Status.Restarts, js.Status.Attempts)
		}
		return nil
	})
	if int(js.Status.Restarts) != restarts {
		r.Errorf("%d restarts after %d kills", js.Status.Restarts, restarts)
	}
	return js
}

// finish checks what the run and its set say in the end, and returns the line with which each worker ends.
func (r *allReduce) finish(name string) string {
	r.Helper()
	js := r.ended(name, jobsetv1alpha2.JobSetCompleted)
	last := js.Status.Attempts[len(js.Status.Attempts)-1]
	if int(js.Status.Restarts) != r.kills || int(js.Status.RestartsCountTowardsMax) != r.kills || int(last.Number) != r.kills+1 ||
		last.Outcome != jobsetv1alpha2.OutcomeCompleted {
		r.Errorf("%d kills, but %d restarts, of which %d count, and the last attempt is %+v", r.kills, js.Status.Restarts, js.Status.RestartsCountTowardsMax, last)
	}
	result, err := allreduce.Result(r.dir)
	want := allreduce.Expected(4, r.steps(), 64)
	if err != nil || !reflect.DeepEqual(result, want) {
		r.Errorf("the result is %+v, error %v, want %+v", result, err, want)
	}
	line := fmt.Sprintf("ends at step %d with the sum %x", want.Step, want.Elements[0])
	if logs := r.plugin("logs", name, "--tail=-1"); strings.Count(logs, line) != 4 {
		r.Errorf("not all workers say %q:\n%s", line, logs)
	}
	slices.Sort(r.times)
	if len(r.times) > 0 {
		r.Logf("%d kills (%v), sum %x is right; from a kill until all are ready: %.1fs to %.1fs, median %.1fs", r.kills, r.ways, result.Elements[0],
			r.times[0].Seconds(), r.times[len(r.times)-1].Seconds(), r.times[len(r.times)/2].Seconds())
	}
	return line
}
