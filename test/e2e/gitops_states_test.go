// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// keepFinalizer keeps an object that is being deleted.
const keepFinalizer = "example.com/keep"

// neverStarts keeps pods from becoming ready.
const neverStarts = `jobset-apiserver.io/kwok-start-after: "3600s"`

// gitopsState is an object and the states that it passes through.
type gitopsState struct {
	// kind is the directory of its states, name the state that the object reaches by itself.
	kind, name string
	manifest   string
	// until has the facts of each state.
	until map[string][]string
	// change brings the object into a state, and next are the further states in order.
	change map[string]func(*recorder)
	next   []string
}

func (s gitopsState) file(state string) string { return s.kind + "/" + state + ".yaml" }

func (s gitopsState) order() []string { return append([]string{s.name}, s.next...) }

// then adds a state that a change leads to.
func (s gitopsState) then(name string, change func(*recorder), facts ...string) gitopsState {
	s.until, s.change = maps.Clone(s.until), maps.Clone(s.change)
	if s.change == nil {
		s.change = map[string]func(*recorder){}
	}
	s.until[name], s.change[name], s.next = facts, change, append(slices.Clone(s.next), name)
	return s
}

// created adds the answer to the creation.
func (s gitopsState) created() gitopsState {
	s.until["created"] = []string{}
	return s
}

// deleting adds the state of an object that a finalizer keeps.
func (s gitopsState) deleting() gitopsState {
	return s.then("deleting", func(r *recorder) {
		r.merge(fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, keepFinalizer))
		policy := metav1.DeletePropagationBackground
		if err := r.resource().Delete(r.Context(), r.object.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			r.Fatal(err)
		}
	}, "deleted")
}

func (r *recorder) merge(patch string) {
	r.Helper()
	if _, err := r.resource().Patch(r.Context(), r.object.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "test"}); err != nil {
		r.Fatal(err)
	}
}

// merging returns a change by a merge patch.
func merging(patch string) func(*recorder) { return func(r *recorder) { r.merge(patch) } }

func gitopsStates() []gitopsState {
	return slices.Concat(jobSetStates(), sequenceStates(), leaderWorkerSetStates(), roleStates(), groupStates())
}

func jobSetStates() []gitopsState {
	set := func(state, pods string, facts []string, extra ...string) gitopsState {
		return gitopsState{kind: "jobset", name: state, manifest: manifest("js-"+state, pods, extra...), until: map[string][]string{state: facts}}
	}
	queued := set("queued", runOn, []string{"Suspended=True"}, "suspend: true")
	queued.manifest = strings.Replace(queued.manifest, "metadata:\n", "metadata:\n  labels: {kueue.x-k8s.io/queue-name: team}\n", 1)
	refused := set("refused", runOn, []string{"PodCreationFailure=True"})
	refused.manifest = strings.Replace(refused.manifest, "            containers:", "            priorityClassName: missing\n            containers:", 1)
	return []gitopsState{
		set("running", runOn, []string{"workers ready=2<nil>"}).created().deleting(),
		set("starting", neverStarts, []string{"workers ready=0<nil>"}).then("restarting", func(r *recorder) {
			r.pluginOK("restart", "jobset/"+r.object.GetName())
		}, "RestartingJobSet=True"),
		set("suspended", runOn, []string{"Suspended=True"}, "suspend: true"),
		queued,
		refused,
		set("failed", fail, []string{"status.terminalState=Failed"}),
		set("completed", runShort, []string{"status.terminalState=Completed"}),
	}
}

const sequenceManifest = `apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: SequentialJob
metadata: {name: %s}
spec:
  suspend: %t
  steps:
  - name: one
    job:
      spec:
        backoffLimit: 0
        template:
          metadata: {annotations: {%s}}
          spec: {restartPolicy: Never, containers: [{name: main, image: registry.example/trainer:v1}]}
`

func sequenceStates() []gitopsState {
	sequence := func(state, pods string, suspend bool, facts ...string) gitopsState {
		text := fmt.Sprintf(sequenceManifest, "sj-"+state, suspend, pods)
		return gitopsState{kind: "sequentialjob", name: state, manifest: text, until: map[string][]string{state: facts}}
	}
	return []gitopsState{
		sequence("running", runOn, false, "status.phase=Running", "Available=True").created().deleting(),
		sequence("suspended", runOn, true, "Suspended=True"),
		sequence("failed", fail, false, "status.phase=Failed"),
		sequence("completed", runShort, false, "status.phase=Completed"),
		sequence("starting", neverStarts, false, "status.phase=Running").then("queued", func(r *recorder) {
			r.eventually(func() string { // the phase is stored before the Job is created
				r.ok("patch", "job", r.object.GetName()+"-0", "--type=merge", "-p",
					`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"team"}},"spec":{"suspend":true}}`)
				return ""
			})
		}, "status.phase=Waiting"),
	}
}

const groupsManifest = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: %s}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2%s
    workerTemplate:
      metadata: {annotations: {%s}}
      spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: registry.example/server:v1}]}
`

// replaced changes the template of pods so that new pods do not become ready.
const replaced = `{"spec":{"leaderWorkerTemplate":{"workerTemplate":{"metadata":{"annotations":{"jobset-apiserver.io/kwok-start-after":"3600s"}}}}}}`

func leaderWorkerSetStates() []gitopsState {
	set := func(state, pods, limit string, facts ...string) gitopsState {
		text := fmt.Sprintf(groupsManifest, "lws-"+state, limit, pods)
		return gitopsState{kind: "leaderworkerset", name: state, manifest: text, until: map[string][]string{state: facts}}
	}
	// A container restarts, and is not ready until the state is recorded. With the pod failed, its StatefulSet would replace it at once.
	failed := set("failed", runOn, "\n    maxGroupRestarts: 0", "Failed=True", "Available=False")
	failed.change = map[string]func(*recorder){"failed": func(r *recorder) {
		r.await([]string{"Available=True"})
		r.restartedWorker(false)
	}}
	failed = failed.then("failed-available", func(r *recorder) { r.restartedWorker(true) }, "Failed=True", "Available=True")
	return []gitopsState{
		set("available", runOn, "", "Available=True").created().
			then("updating", merging(replaced), "UpdateInProgress=True", "observed=true").
			then("paused", merging(`{"spec":{"paused":true}}`), "UpdateInProgress=True", "spec.paused=true", "observed=true").deleting(),
		set("progressing", neverStarts, "", "Progressing=True").
			then("scaled-to-zero", merging(`{"spec":{"replicas":0}}`), "Available=True", "observed=true"),
		failed,
	}
}

// restartedWorker has the container of a worker of the first group run after a restart.
func (r *recorder) restartedWorker(ready bool) {
	r.Helper()
	condition := "False"
	if ready {
		condition = "True"
	}
	r.ok("patch", "pod", r.object.GetName()+"-0-1", "--subresource=status", "-p", fmt.Sprintf(
		`{"status":{"conditions":[{"type":"Ready","status":%q}],"containerStatuses":[{"name":"main","image":"registry.example/server:v1","imageID":"",
		"ready":%t,"restartCount":1,"state":{"running":{"startedAt":%q}}}]}}`, condition, ready, timestamp()))
}

func roleStates() []gitopsState {
	set := func(state, pods string, facts ...string) gitopsState {
		text := strings.ReplaceAll(roles("registry.example/server:v1", "prefill=1", "decode=1"), "name: llm}", "name: ds-"+state+"}")
		text = strings.ReplaceAll(text, "        workerTemplate:\n", "        workerTemplate:\n          metadata: {annotations: {"+pods+"}}\n")
		return gitopsState{kind: "disaggregatedset", name: state, manifest: text, until: map[string][]string{state: facts}}
	}
	return []gitopsState{
		set("available", runOn, "Available=True").created().
			then("updating", func(r *recorder) {
				r.ok("patch", "disaggregatedset", r.object.GetName(), "--type=json", "-p",
					`[{"op":"replace","path":"/spec/roles/0/spec/leaderWorkerTemplate/workerTemplate/metadata/annotations","value":{"jobset-apiserver.io/kwok-start-after":"3600s"}}]`)
			}, "Progressing=True", "observed=true").deleting(),
		set("progressing", neverStarts, "Progressing=True"),
	}
}

func groupStates() []gitopsState {
	const text = `apiVersion: batch.jobset-apiserver.io/v1alpha1
kind: PodReadinessGroup
metadata: {name: pair}
spec: {minMember: 2}
`
	pods := func(r *recorder) {
		for _, name := range []string{"pair-0", "pair-1"} {
			r.okIn(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {batch.jobset-apiserver.io/pod-group: pair}, annotations: {%s}}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: busybox}]}
`, name, runOn), "create", "-f", "-")
		}
	}
	s := gitopsState{kind: "podreadinessgroup", name: "pending", manifest: text, until: map[string][]string{"pending": {"status.phase=Pending", "observed=true"}}}
	return []gitopsState{s.created().
		then("ready", pods, "status.phase=Ready").
		then("degraded", func(r *recorder) { r.ok("delete", "pod", "pair-1") }, "status.phase=Degraded").deleting()}
}
